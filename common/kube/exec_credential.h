// Exec credentials: a token or client certificate that a command of the kubeconfig prints, as kubectl takes them from
// `aws eks get-token` or `kubelogin`. The command gets an ExecCredential of client.authentication.k8s.io in the
// variable KUBERNETES_EXEC_INFO and prints one with a status. Reference:
// kubernetes.io/docs/reference/access-authn-authz/authentication, client-go credential plugins.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::kube {

// Selects when the command gets this process's standard input.
enum class ExecInput { kNever, kIfTerminal, kAlways };

struct ExecCommand {
  std::string api_version;             // client.authentication.k8s.io/v1 or v1beta1
  std::vector<std::string> arguments;  // the command, then its arguments
  std::map<std::string, std::string> variables;
  std::string install_hint;  // for people, about a command that is missing
  ExecInput input = ExecInput::kIfTerminal;
  nlohmann::json cluster;  // spec.cluster of the ExecCredential; null: the command does not ask for it
};

struct ExecCredential {
  std::string token;        // empty: none
  std::string certificate;  // PEM, with key; empty: none
  std::string key;
  absl::Time expiry = absl::InfiniteFuture();
};

// Returns the value of KUBERNETES_EXEC_INFO.
std::string exec_info(const ExecCommand& command, bool is_interactive);

// Reads the output of a command. InvalidArgument if it is not an ExecCredential of `api_version` with a token or with a
// certificate and its key. The message does not contain the output, which may hold secrets.
absl::StatusOr<ExecCredential> parse_exec_credential(absl::string_view output, absl::string_view api_version);

}  // namespace gleaner::kube
