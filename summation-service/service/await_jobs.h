// await_jobs() has this process wait for the invitations of jobs, and serve one job after the other
// (common/invitation/invitation.h).
#pragma once

#include "absl/status/status.h"
#include "common/base/address.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "summation-service/service/server.h"

namespace gleaner::service {

// Waits on `address`, and prints it with the port in use. `options` are those of every job, with the token of the
// summers; each invitation sets the coordinator, the job and its token. Returns OK after a signal, or an error if
// nothing can listen on `address`. The end of a job, well or in error, is logged.
absl::Status await_jobs(const Env& env, const EndSignals& signals, const Address& address,
                        const ServerOptions& options);

}  // namespace gleaner::service
