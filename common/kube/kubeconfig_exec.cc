#include "common/kube/kubeconfig_exec.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kube/yaml_fields.h"

namespace gleaner::kube {
namespace {

constexpr char kV1[] = "client.authentication.k8s.io/v1";
constexpr char kV1Beta1[] = "client.authentication.k8s.io/v1beta1";

absl::StatusOr<ExecInput> input_of(const std::string& mode, const std::string& api_version) {
  if (mode == "Never") return ExecInput::kNever;
  if (mode == "IfAvailable" || (mode.empty() && api_version == kV1Beta1)) return ExecInput::kIfTerminal;
  if (mode == "Always") return ExecInput::kAlways;
  return absl::InvalidArgumentError(
      absl::StrCat("interactiveMode must be Never, IfAvailable or Always, not '", mode, "'"));
}

absl::StatusOr<ExecCommand> read(const YAML::Node& exec, const std::filesystem::path& folder) {
  ExecCommand command;
  command.api_version = text(exec, "apiVersion");
  if (command.api_version != kV1 && command.api_version != kV1Beta1) {
    return absl::UnimplementedError(absl::StrCat("apiVersion '", command.api_version, "' is not supported; ", kV1,
                                                 " and ", kV1Beta1, " are: update the command and its kubeconfig"));
  }
  std::string program = text(exec, "command");
  if (program.empty()) return absl::InvalidArgumentError("command is missing");
  if (absl::StrContains(program, '/')) program = (folder / program).string();
  command.arguments.push_back(std::move(program));
  for (const YAML::Node& argument : exec["args"]) command.arguments.push_back(argument.as<std::string>());
  for (const YAML::Node& variable : exec["env"]) {
    const std::string name = text(variable, "name");
    if (name.empty()) return absl::InvalidArgumentError("a variable of env has no name");
    command.variables[name] = text(variable, "value");
  }
  // The hint goes to a terminal, which must not obey escape sequences in it.
  for (const char c : text(exec, "installHint")) {
    if (!absl::ascii_iscntrl(static_cast<unsigned char>(c)) || c == '\n') command.install_hint += c;
  }
  GLN_ASSIGN_OR_RETURN(command.input, input_of(text(exec, "interactiveMode"), command.api_version));
  return command;
}

}  // namespace

absl::StatusOr<ExecCommand> read_exec_command(const YAML::Node& exec, const std::filesystem::path& folder,
                                              const std::string& user) {
  auto command = read(exec, folder);
  if (command.ok()) return command;
  return absl::Status(command.status().code(),
                      absl::StrCat("the kubeconfig's user '", user, "', exec: ", command.status().message()));
}

}  // namespace gleaner::kube
