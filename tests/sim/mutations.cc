#include "tests/sim/mutations.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/base/faults.h"
#include "common/kernels/kernels.h"
#include "tests/sim/simulation.h"

namespace gleaner::sim {
namespace {

constexpr int kNotFound = 0;
constexpr int kFound = 1;

int look_for(const char* mutation, uint64_t seeds) {
  const kernels::Kernels kernels = *kernels::Kernels::choose(kernels::available_variants().front());
  Report report(false);
  report.mutation = mutation;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    Simulation(scenario, &kernels, &report).run();
    if (!report.failure()) continue;
    std::printf("mutation \"%s\": found by seed %llu: %.160s\n", mutation, static_cast<unsigned long long>(seed),
                report.failure()->c_str());
    std::fflush(stdout);
    return kFound;
  }
  return kNotFound;
}

}  // namespace

bool find_mutations(uint64_t seeds) {
  bool all = true;
  for (const faults::Site* site : faults::sites()) {
    if (site->kind != faults::Kind::kMutation) continue;
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) _exit(look_for(site->name, seeds));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
      std::perror("sim: mutations");
      return false;
    }
    if (WIFSIGNALED(status)) std::printf("mutation \"%s\": found by a crash\n", site->name);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound) {
      std::printf("mutation \"%s\": NOT found by %llu seeds\n", site->name, static_cast<unsigned long long>(seeds));
      all = false;
    }
  }
  return all;
}

}  // namespace gleaner::sim
