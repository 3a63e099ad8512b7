#include "common/kube/exec_source.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kube/command_output.h"

namespace gleaner::kube {
namespace {

constexpr absl::Duration kNextTry = absl::Seconds(5);       // after a command that failed, while a credential is valid
constexpr absl::Duration kLongestLead = absl::Seconds(30);  // by which renewal comes before the expiry

}  // namespace

absl::StatusOr<ExecSource::Shared> ExecSource::get() {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_.now();
  if (current_ != nullptr && now < renewal_) return current_;
  auto made = run();
  if (!made.ok()) {
    if (current_ == nullptr || now >= current_->expiry) return made.status();
    renewal_ = now + kNextTry;
    return current_;
  }
  const absl::Duration lifetime = made->expiry - clock_.now();
  renewal_ = made->expiry - std::clamp(lifetime / 10, absl::ZeroDuration(), kLongestLead);
  current_ = std::make_shared<const ExecCredential>(*std::move(made));
  return current_;
}

void ExecSource::drop(const Shared& refused) {
  absl::MutexLock lock(&mutex_);
  if (current_ == refused) current_ = nullptr;
}

absl::StatusOr<ExecCredential> ExecSource::run() const {
  const std::string origin = "the kubeconfig's user signs in by a command: ";
  const bool has_terminal = isatty(STDIN_FILENO) == 1;
  if (command_.input == ExecInput::kAlways && !has_terminal) {
    return absl::FailedPreconditionError(
        absl::StrCat(origin, "'", command_.arguments.front(), "' needs standard input to be a terminal"));
  }
  const bool is_interactive = command_.input != ExecInput::kNever && has_terminal;
  std::map<std::string, std::string> variables = command_.variables;
  variables["KUBERNETES_EXEC_INFO"] = exec_info(command_, is_interactive);
  const auto output = command_output(command_.arguments, std::move(variables), is_interactive);
  if (absl::IsNotFound(output.status()) && !command_.install_hint.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(origin, output.status().message(), "\n\n", command_.install_hint));
  }
  if (!output.ok()) return absl::FailedPreconditionError(absl::StrCat(origin, output.status().message()));
  auto credential = parse_exec_credential(*output, command_.api_version);
  if (credential.ok()) return credential;
  return absl::FailedPreconditionError(absl::StrCat(origin, "the output of '", command_.arguments.front(),
                                                    "' can't be used: ", credential.status().message()));
}

}  // namespace gleaner::kube
