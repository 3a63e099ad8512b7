// libFuzzer target: any text is a topology, or an error with a message. A topology that was read is written, and
// reading it again gives the same file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/topology/json.h"
#include "common/topology/network.h"
#include "common/topology/summary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace topology = gleaner::topology;
  const auto made = topology::parse_topology({reinterpret_cast<const char*>(data), size});
  if (!made.ok()) {
    if (made.status().code() != absl::StatusCode::kInvalidArgument || made.status().message().empty()) std::abort();
    return 0;
  }
  const std::string text = topology::to_json(*made);
  const auto again = topology::parse_topology(text);
  if (!again.ok() || topology::to_json(*again) != text) std::abort();
  const topology::Network network = topology::make_network(*made);
  if (topology::to_table(*made, topology::summarize(network)).empty()) std::abort();
  return 0;
}
