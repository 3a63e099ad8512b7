#include "cli/cluster_flags.h"

namespace gleaner::cli {

void add_connection_flags(flags::Command& command, ClusterFlags& flags, Namespaces namespaces) {
  if (namespaces != Namespaces::kNone) {
    command.add_text("-n,--namespace", flags.ns, "Namespace [default: the context's]");
  }
  if (namespaces == Namespaces::kOneOrAll) {
    command.add_switch("-A,--all-namespaces", flags.all_namespaces, "All namespaces");
  }
  flags::add_kubeconfig(command, flags.kube);
}

void add_cluster_flags(flags::Command& command, ClusterFlags& flags, Namespaces namespaces) {
  add_connection_flags(command, flags, namespaces);
  command.add_text("-o,--output", flags.output, "table or json").one_of({"table", "json"}).show_default();
}

flags::Flag add_job_argument(flags::Command& command, ClusterFlags& flags) {
  return command.add_text("JOB", flags.job, "Name of a TrainingJob");
}

}  // namespace gleaner::cli
