#include "common/flags/groups.h"

namespace gleaner::flags {

Flag add_log_level(Command& command, std::string& level) {
  return command.add_text("--log-level", level, "debug, info, warning, error or off")
      .show_default()
      .environment("GLEANER_LOG_LEVEL");
}

Flag add_metrics(Command& command, std::string& address) {
  return command.add_text("--metrics", address, "Serve Prometheus metrics on HOST:PORT").optional_address();
}

Flag add_health(Command& command, std::string& address) {
  return command.add_text("--health", address, "Serve /healthz and /readyz on HOST:PORT").optional_address();
}

Flag add_kernel(Command& command, std::string& kernel) {
  return command
      .add_text("--kernel", kernel, "Sum kernel: scalar, avx2 or avx512; default: the best that the processor can run")
      .environment("GLEANER_KERNEL");
}

void add_kubeconfig(Command& command, KubeFlags& flags) {
  command.add_text("--kubeconfig", flags.kubeconfig,
                   "The kubeconfig to use outside a pod; default: $KUBECONFIG, then ~/.kube/config");
  command.add_text("--context", flags.context, "Context of the kubeconfig; default: its current one");
}

Flag add_coordinator(Command& command, JoinFlags& flags) {
  return command.add_text("--coordinator", flags.coordinator, "The job's coordinator, HOST:PORT")
      .peer_address()
      .environment("GLEANER_COORDINATOR");
}

Flag add_proof(Command& command, JoinFlags& flags) {
  Flag token_file = command.add_text("--token-file", flags.token_file, "File with the job's token");
  token_file.environment("GLEANER_TOKEN_FILE");
  command.add_text("--ca-file", flags.ca_file, "PEM file with the CA of the coordinator's certificate; default: no TLS")
      .environment("GLEANER_CA_FILE");
  return token_file;
}

Flag add_job(Command& command, JoinFlags& flags) {
  return command.add_text("--job", flags.job, "Name of the job").name().environment("GLEANER_JOB");
}

}  // namespace gleaner::flags
