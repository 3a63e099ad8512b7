// The flags of commands that read a Kubernetes cluster.
#pragma once

#include <cstdint>
#include <string>

#include "common/flags/command.h"
#include "common/flags/groups.h"

namespace gleaner::cli {

struct ClusterFlags {
  std::string job;  // name of a TrainingJob; empty: not given
  std::string ns, output = "table";
  flags::KubeFlags kube;
  bool all_namespaces = false;
  int64_t pid = 0;        // of `gleaner run`; 0: not given
  std::string local_job;  // name of a job of `gleaner run`; empty: not given
};

enum class Namespaces { kOne, kOneOrAll, kNone };
// Adds the flags for the connection, and -o.
void add_cluster_flags(flags::Command& command, ClusterFlags& flags, Namespaces namespaces);
// Adds the same flags without -o.
void add_connection_flags(flags::Command& command, ClusterFlags& flags, Namespaces namespaces);
// Adds the positional argument JOB.
flags::Flag add_job_argument(flags::Command& command, ClusterFlags& flags);

}  // namespace gleaner::cli
