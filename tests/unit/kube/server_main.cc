// The main program of tests with an API server; also the candidate of a leader election (elector.h).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/kube/process.h"
#include "tests/unit/kube/api_server.h"
#include "tests/unit/kube/elector.h"

namespace gleaner::kube {
namespace {

void say(absl::string_view word) {
  if (write(STDOUT_FILENO, word.data(), word.size()) < 0) _exit(1);
}

}  // namespace

int run_elector(const std::string& kubeconfig, const std::string& ns) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // works even if the process is frozen
  const SystemEnv env({.component = "elector", .level = LogLevel::kOff});
  auto credentials = kubeconfig_credentials(kubeconfig, "");
  if (!credentials.ok()) return 1;
  auto client = Client::create(env.env(), {.credentials = *credentials});
  if (!client.ok()) return 1;
  LeaderElection::Options options = quick_election(ns, "process");
  options.on_acquired = [] { say("leading\n"); };
  options.on_lost = [] { say("lost\n"); };
  const auto election = LeaderElection::start(env.env(), **client, options);
  absl::Duration last = env.env().clock->since_start();
  while (true) {
    absl::SleepFor(absl::Milliseconds(5));
    const absl::Duration now = env.env().clock->since_start();
    if (now - last > options.lease_duration && election->is_leader()) say("wrong\n");
    last = now;
  }
}

}  // namespace gleaner::kube

int main(int argc, char** argv) {
  gleaner::kube::prepare_process();
  if (argc == 4 && absl::string_view(argv[1]) == gleaner::kube::kElectorMode) {
    return gleaner::kube::run_elector(argv[2], argv[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(gleaner::kube::server_environment());
  return RUN_ALL_TESTS();
}
