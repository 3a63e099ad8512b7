#include "summation-service/service/job_service.h"

#include <memory>

#include "absl/time/time.h"
#include "common/base/backoff.h"

namespace gleaner::service {
namespace {

// Computes the pause of a summer before it joins a job again that went on without it. The pause doubles if the job goes
// on without the summer again within a minute, as happens while some worker can't reach the summer.
class RejoinBackoff {
 public:
  absl::Duration next(absl::Duration served) {
    if (served > kLongEnough) pause_ = absl::ZeroDuration();
    return pause_ = next_pause(pause_, kLeast, kMost);
  }

 private:
  static constexpr absl::Duration kLeast = absl::Milliseconds(250);
  static constexpr absl::Duration kMost = absl::Seconds(30);
  static constexpr absl::Duration kLongEnough = absl::Minutes(1);

  absl::Duration pause_;  // the last one
};

}  // namespace

JobOutcome serve_job(const Env& env, const EndSignals& signals, const ServerOptions& options,
                     const std::function<void(Server*)>& on_server) {
  RejoinBackoff backoff;
  JobOutcome outcome;
  while (true) {
    const absl::Duration began = env.clock->since_start();
    const auto server = Server::create(env, options);
    if (!server.ok()) {
      outcome.status = server.status();
      return outcome;
    }
    if (on_server != nullptr) on_server(server->get());
    signals.during([&] { outcome.status = (*server)->run(); },
                   [&](int signal) {
                     env.log->info("leaving", "signal", signal);
                     outcome.stop_requested = true;
                     (*server)->stop();
                   });
    if (on_server != nullptr) on_server(nullptr);
    if (!absl::IsAborted(outcome.status) || outcome.stop_requested) return outcome;
    const absl::Duration pause = backoff.next(env.clock->since_start() - began);
    env.log->warning("the job went on without this summer", "reason", outcome.status.message(), "joins again in",
                     absl::FormatDuration(pause));
    if (signals.wait(pause) != 0) return {absl::OkStatus(), true};
  }
}

}  // namespace gleaner::service
