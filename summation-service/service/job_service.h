// serve_job() has this process sum for one job, as a CPU summer, until the summer's part in the job has ended.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "summation-service/service/server.h"

namespace gleaner::service {

struct JobOutcome {
  absl::Status status;          // as Server::run() returns it, or the error of Server::create()
  bool stop_requested = false;  // a signal has asked the summer to leave
};

// Serves until the job ends or a signal asks the summer to leave. If the job counts the summer as lost, the summer
// joins the job again, after a pause. `on_server`, if not null, is called with each server before it runs; from then on
// any thread may call the server, until `on_server` is called again, with null.
JobOutcome serve_job(const Env& env, const EndSignals& signals, const ServerOptions& options,
                     const std::function<void(Server*)>& on_server = nullptr);

}  // namespace gleaner::service
