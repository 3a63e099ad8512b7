#include "agent/publish/nvml_report.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::publish {

std::string nvml_trouble(const discover::Machine& machine) {
  if (!machine.without_nvml.empty()) {
    return absl::StrCat("GPUs are found by their PCI class only; ", machine.without_nvml);
  }
  if (machine.nvml_failures.empty()) return "";
  return absl::StrCat("NVML fails in part: ", absl::StrJoin(machine.nvml_failures, "; "));
}

std::optional<std::string> NvmlReport::changed(const discover::Machine& machine) {
  std::string trouble = nvml_trouble(machine);
  if (trouble == told_) return std::nullopt;
  told_ = std::move(trouble);
  return told_;
}

}  // namespace gleaner::publish
