// The commands that read a Kubernetes cluster and change nothing in it. Two programs declare them. `gleaner` parses the
// command line, so it has their help and completion. Then it runs `gleaner-cluster`, which carries them out. So
// `gleaner` needs no client of the API server, which is a large part of the code.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "cli/cluster_flags.h"
#include "cli/commands.h"

namespace gleaner::cli {

struct AutoscaleFlags {
  std::string file;
  bool every = false;
};

struct ClusterActions {
  std::function<absl::Status(const ClusterFlags&)> status, explain, top, logs;
  std::function<absl::Status(const AutoscaleFlags&)> autoscale;
};

// Adds `autoscale`, `status`, `explain`, `top` and `logs`.
void add_cluster_commands(flags::Command& app, Context& context, const ClusterActions& actions);

}  // namespace gleaner::cli
