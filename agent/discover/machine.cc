#include "agent/discover/machine.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace gleaner::discover {
namespace {

// The line reads "MemTotal:       24669624 kB".
uint64_t read_total_memory(const Tree& tree) {
  for (const absl::string_view line : absl::StrSplit(tree.read("proc/meminfo").value_or(""), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t kibibytes = 0;
    if (words.size() >= 2 && words[0] == "MemTotal:" && absl::SimpleAtoi(words[1], &kibibytes)) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

absl::StatusOr<Machine> read_machine(const MachineSource& source) {
  GLN_ASSIGN_OR_RETURN(Processors processors, read_processors(source.hwloc));
  if (const uint64_t bytes = read_total_memory(source.tree); bytes > 0) processors.memory_bytes = bytes;
  return Machine{read_devices(source.tree, source.nvml_library), std::move(processors)};
}

}  // namespace gleaner::discover
