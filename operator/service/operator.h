// gleaner-operator: caches, lease, metrics and health of one replica, and its Leadership while it leads.
#pragma once

#include "absl/status/status.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/kube/credentials.h"
#include "operator/service/options.h"

namespace gleaner::operation {

// Runs until one of `signals` comes: OK. Aborted: the lease was lost; the process must end at once, since another
// replica leads now. Anything else: it could not start.
absl::Status run(const Env& env, const OperatorOptions& options, const kube::Credentials& credentials,
                 const EndSignals& signals);

}  // namespace gleaner::operation
