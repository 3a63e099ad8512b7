// ExecSource provides the credential that a command prints. It runs the command when there is no credential yet, when
// the credential nears its expiry, and when the server has refused it.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/exec_credential.h"

namespace gleaner::kube {

// Thread safe: one caller runs the command while the others wait for its result.
class ExecSource {
 public:
  using Shared = std::shared_ptr<const ExecCredential>;

  // `clock` must outlive this object.
  ExecSource(const Clock& clock, ExecCommand command) : clock_(clock), command_(std::move(command)) {}

  // Returns a credential that is valid now. Blocks while the command runs. FailedPrecondition if the command is
  // missing, fails or prints no credential. A command that fails before the last credential expires is an error only
  // afterwards.
  absl::StatusOr<Shared> get() ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the next get() run the command, unless `refused` has been replaced already.
  void drop(const Shared& refused) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<ExecCredential> run() const;

  const Clock& clock_;
  const ExecCommand command_;
  absl::Mutex mutex_;
  Shared current_ ABSL_GUARDED_BY(mutex_);
  absl::Time renewal_ ABSL_GUARDED_BY(mutex_);  // from then on, get() runs the command
};

}  // namespace gleaner::kube
