// libFuzzer target: any text is a machine, or an error with a message. A machine that was read is written, reading it
// again gives an equal one, and there is a best way inside it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/machine/choice.h"
#include "common/machine/json.h"
#include "common/machine/report.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace machine = gleaner::machine;
  const auto made = machine::parse_machine({reinterpret_cast<const char*>(data), size});
  if (!made.ok()) {
    if (made.status().message().empty()) std::abort();
    return 0;
  }
  const auto again = machine::parse_machine(machine::to_json(*made).dump());
  if (!again.ok() || *again != *made) std::abort();
  const auto choice = machine::choose(*made);
  if (!choice.ok() || machine::to_text(*made, *choice).empty()) std::abort();
  if (machine::to_json(*made, *choice)["best"].empty()) std::abort();
  return 0;
}
