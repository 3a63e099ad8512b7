// Reads the field `exec` of a kubeconfig's user.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "common/kube/exec_credential.h"

namespace gleaner::kube {

// Returns the command of `exec` without `cluster`. A command with a slash is relative to `folder`, that of the
// kubeconfig. InvalidArgument or Unimplemented: the message names `user` and the field.
absl::StatusOr<ExecCommand> read_exec_command(const YAML::Node& exec, const std::filesystem::path& folder,
                                              const std::string& user);

}  // namespace gleaner::kube
