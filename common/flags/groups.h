// Functions that add flags which several programs have, with one meaning and one help text. Each function adds a flag
// to `command`; parse() sets `target`.
#pragma once

#include <string>

#include "common/flags/command.h"

namespace gleaner::flags {

// Adds --log-level. `level` has the default, which help shows.
Flag add_log_level(Command& command, std::string& level);
// Adds --metrics, the address at which the program serves Prometheus metrics.
Flag add_metrics(Command& command, std::string& address);
// Adds --health, the address at which the program serves probes.
Flag add_health(Command& command, std::string& address);

// Adds --kernel, the sum kernel that the program uses.
Flag add_kernel(Command& command, std::string& kernel);

// The flags that choose a Kubernetes cluster: the arguments of kube::find_credentials().
struct KubeFlags {
  std::string kubeconfig, context;
};
// Adds --kubeconfig and --context.
void add_kubeconfig(Command& command, KubeFlags& flags);

// The flags by which a member or observer joins a job.
struct JoinFlags {
  std::string coordinator, token_file, ca_file, job = "default";
};
// Adds --coordinator.
Flag add_coordinator(Command& command, JoinFlags& flags);
// Adds --token-file, which is returned, and --ca-file.
Flag add_proof(Command& command, JoinFlags& flags);
// Adds --job.
Flag add_job(Command& command, JoinFlags& flags);

}  // namespace gleaner::flags
