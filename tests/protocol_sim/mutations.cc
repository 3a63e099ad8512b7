#include "tests/protocol_sim/mutations.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/base/faults.h"
#include "common/kernels/kernels.h"
#include "tests/protocol_sim/processes.h"
#include "tests/protocol_sim/simulation.h"

namespace gleaner::sim {
namespace {

// How a mutation was detected.
struct Detection {
  uint64_t seed;  // 0: it was not
  char failure[161];
};

Detection look_for(const char* mutation, uint64_t seeds) {
  const kernels::Kernels kernels = *kernels::Kernels::choose(kernels::available_variants().front());
  Report report(false);
  report.mutation = mutation;
  Detection detection{};
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    Simulation(scenario, &kernels, &report).run();
    if (!report.failure()) continue;
    detection.seed = seed;
    std::snprintf(detection.failure, sizeof(detection.failure), "%s", report.failure()->c_str());
    break;
  }
  return detection;
}

}  // namespace

bool find_mutations(uint64_t seeds, size_t jobs) {
  std::vector<const faults::Site*> mutations;
  std::ranges::copy_if(faults::sites(), std::back_inserter(mutations),
                       [](const faults::Site* site) { return site->kind == faults::Kind::kMutation; });
  const Shared<Detection> detections(mutations.size());
  const auto ends = detections.elements().empty() ? std::nullopt : run_processes(mutations.size(), jobs, [&](size_t i) {
    detections.elements()[i] = look_for(mutations[i]->name, seeds);
  });
  if (!ends.has_value()) {
    std::perror("sim: mutations");
    return false;
  }
  bool all = true;
  for (size_t i = 0; i < mutations.size(); ++i) {
    const Detection& detection = detections.elements()[i];
    const char* const name = mutations[i]->name;
    if (WIFSIGNALED((*ends)[i])) {
      std::printf("mutation \"%s\": found by a crash\n", name);
    } else if (detection.seed > 0) {
      std::printf("mutation \"%s\": found by seed %llu: %s\n", name, static_cast<unsigned long long>(detection.seed),
                  detection.failure);
    } else {
      std::printf("mutation \"%s\": NOT found by %llu seeds\n", name, static_cast<unsigned long long>(seeds));
      all = false;
    }
  }
  return all;
}

}  // namespace gleaner::sim
