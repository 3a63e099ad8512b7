// Runs one replica of gleaner-operator: its caches, lease, metrics and health checks, and a Leadership while it leads.
#pragma once

#include "absl/status/status.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/kube/credentials.h"
#include "operator/service/options.h"

namespace gleaner::operation {

// Runs until one of `signals` arrives, and then returns OK. Aborted: the lease was lost, and the process must end
// immediately, since another replica leads. Other errors: the replica could not start.
absl::Status run(const Env& env, const OperatorOptions& options, const kube::Credentials& credentials,
                 const EndSignals& signals);

}  // namespace gleaner::operation
