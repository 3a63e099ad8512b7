#include "cli/networks/machine_output.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/discover/devices.h"
#include "agent/discover/nvml.h"
#include "common/api/node_profile.h"
#include "common/base/file.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/machine/choice.h"
#include "common/machine/json.h"
#include "common/machine/profile.h"
#include "common/machine/report.h"

namespace gleaner::cli {
namespace {

constexpr machine::Step kStep = {.gradient_bytes = 1 << 30};

absl::StatusOr<machine::Machine> read_machine_file(const std::string& file) {
  GLN_ASSIGN_OR_RETURN(const std::string text, read_file(file, "the machine"));
  absl::StatusOr<machine::Machine> machine = machine::parse_machine(text);
  if (machine.ok()) return machine;
  return absl::Status(machine.status().code(), absl::StrCat(quote(file), ": ", machine.status().message()));
}

absl::StatusOr<machine::Machine> read_this_machine() {
  discover::Devices devices = discover::read_devices(discover::Tree("/"), discover::kNvmlLibrary);
  api::NodeProfileStatus profile;
  profile.nics = std::move(devices.nics);
  profile.gpus = std::move(devices.gpus);
  profile.nvlinks = std::move(devices.nvlinks);
  profile.paths = std::move(devices.paths);
  machine::Machine machine = machine::machine_of(profile);
  const absl::Status status = machine::check(machine);
  if (status.ok()) return machine;
  return absl::Status(status.code(),
                      absl::StrCat("this machine: ", status.message(), "; to see another one, give its file"));
}

}  // namespace

absl::StatusOr<std::string> machine_output(const std::string& file, bool as_json) {
  GLN_ASSIGN_OR_RETURN(const machine::Machine machine, file.empty() ? read_this_machine() : read_machine_file(file));
  GLN_ASSIGN_OR_RETURN(const machine::Choice choice, machine::choose(machine, kStep));
  if (as_json) return absl::StrCat(machine::to_json(machine, choice, kStep).dump(2), "\n");
  return machine::to_text(machine, choice, kStep);
}

}  // namespace gleaner::cli
