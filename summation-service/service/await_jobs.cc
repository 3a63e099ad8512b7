#include "summation-service/service/await_jobs.h"

#include <cstdio>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/invitation/port.h"
#include "common/proto/proof.h"
#include "summation-service/service/job_service.h"

namespace gleaner::service {
namespace {

// The server of the job in progress, for the thread that learns that the job's inviter is gone. Thread safe.
class Joining {
 public:
  void set(Server* server) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    server_ = server;
    give_up_if_gone();
  }
  // A coordinator is gone with its inviter. A summer that has joined follows the coordinator's stream instead.
  void on_inviter_gone() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    is_gone_ = true;
    give_up_if_gone();
  }

 private:
  void give_up_if_gone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (is_gone_ && server_ != nullptr) {
      server_->give_up_joining(absl::UnavailableError("the inviter is gone, and this summer had not joined its job"));
    }
  }

  absl::Mutex mutex_;
  Server* server_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_gone_ ABSL_GUARDED_BY(mutex_) = false;
};

ServerOptions options_for(const invitation::Invitation& invitation, const ServerOptions& common,
                          invitation::InvitationPort& port) {
  ServerOptions options = common;
  options.coordinator = invitation.coordinator;
  options.job = invitation.job;
  options.token = proto::make_job_token(common.token, invitation.token_nonce);
  options.token_file.clear();  // it has the token of the summers
  if (options.advertise.empty() && is_unspecified(options.listen.host)) options.advertise = invitation.summer;
  options.on_joined = [&port] { port.joined(); };
  return options;
}

JobOutcome serve_invited(const Env& env, const EndSignals& signals, const invitation::Invitation& invitation,
                         const ServerOptions& common, invitation::InvitationPort& port) {
  env.log->info("invited", "job", invitation.job, "coordinator", invitation.coordinator.to_string());
  const auto joining = std::make_shared<Joining>();
  port.on_inviter_gone([joining] { joining->on_inviter_gone(); });
  JobOutcome outcome = serve_job(env, signals, options_for(invitation, common, port),
                                 [&joining](Server* server) { joining->set(server); });
  if (outcome.stop_requested) {
    port.end(absl::UnavailableError("the summer's process was asked to end"));
  } else if (outcome.status.ok()) {
    env.log->info("the job has ended; waiting for the next", "job", invitation.job);
    port.end(absl::OkStatus());
  } else {
    env.log->warning("the job has ended in error; waiting for the next", "job", invitation.job, "reason",
                     outcome.status.message());
    port.end(absl::UnavailableError(outcome.status.message()));
  }
  return outcome;
}

}  // namespace

absl::Status await_jobs(const Env& env, const EndSignals& signals, const Address& address,
                        const ServerOptions& options) {
  GLN_ASSIGN_OR_RETURN(const auto port, invitation::InvitationPort::open(env, address, options.token));
  std::printf("waiting for jobs on %s\n", port->address().to_string().c_str());
  std::fflush(stdout);
  while (true) {
    std::optional<invitation::Invitation> invitation;
    signals.during([&] { invitation = port->next(); }, [&](int) { port->stop(); });
    if (!invitation.has_value()) return absl::OkStatus();
    if (serve_invited(env, signals, *invitation, options, *port).stop_requested) return absl::OkStatus();
  }
}

}  // namespace gleaner::service
