// The simulator of the protocol cores:
//   sim_test [--seeds N] [--first S] [--mutation-seeds M]
//     Runs N random jobs, with the seeds from S on. Stops at the first job that fails, and prints the command that
//     replays it. Then runs jobs with mutations, each of which breaks the protocol in one place (mutations.h), and
//     fails if M jobs do not detect a mutation.
//   sim_test --seed S
//     Runs the job of this seed and prints every event.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/base/faults.h"
#include "tests/sim/mutations.h"
#include "tests/sim/simulation.h"

namespace gleaner::sim {
namespace {

constexpr uint64_t kEnoughSeeds = 10000;  // with so many, every site must be reached, and every fault at every moment

struct Arguments {
  uint64_t first = 1;
  uint64_t seeds = 1000;
  uint64_t mutation_seeds = 0;
  bool trace = false;
};

bool parse(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const absl::string_view flag = argv[i];
    uint64_t value = 0;
    if (!absl::SimpleAtoi(argv[i + 1], &value)) return false;
    if (flag == "--seeds") {
      arguments.seeds = value;
    } else if (flag == "--first") {
      arguments.first = value;
    } else if (flag == "--mutation-seeds") {
      arguments.mutation_seeds = value;
    } else if (flag == "--seed") {
      arguments = {.first = value, .seeds = 1, .trace = true};
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

// Prints the counts of Coverage. Returns false if one of them is zero.
bool summarize(const Coverage& coverage) {
  const std::vector<std::pair<const char*, uint64_t>> parts = {
      {"seeds", coverage.seeds},
      {"events", coverage.events},
      {"frames", coverage.frames},
      {"sums", coverage.sums},
      {"running sums", coverage.accumulated},
      {"duplicates", coverage.duplicates},
      {"disconnects", coverage.disconnects},
      {"lost", coverage.lost},
      {"survivors", coverage.survivors},
      {"repeated", coverage.repeated},
      {"resent", coverage.resent},
      {"late results", coverage.late_results},
      {"defers", coverage.defers},
      {"stalls", coverage.stalls},
      {"early commits", coverage.early_commits},
      {"plans", coverage.plans},
      {"recovered", coverage.recovered},
      {"moved plans", coverage.moved_plans},
      {"given up", coverage.given_up},
      {"reports", coverage.reports},
      {"reports lost", coverage.reports_lost},
      {"summers lost", coverage.summers_lost},
      {"came", coverage.summers_came},
      {"left", coverage.summers_left},
      {"coordinators lost", coverage.coordinators_lost},
      {"gone for good", coverage.coordinators_gone},
      {"repeated welcomes", coverage.repeated_welcomes},
      {"early faults", coverage.early_faults},
      {"usurped", coverage.usurped},
      {"fenced", coverage.fenced},
      {"takeovers", coverage.takeovers},
      {"moved in flight", coverage.moved},
      {"handed on", coverage.handed},
      {"in place", coverage.in_place},
  };
  bool complete = true;
  std::string line = "sim:";
  for (const auto& [name, count] : parts) {
    absl::StrAppend(&line, " ", count, " ", name, ",");
    complete = complete && count > 0;
  }
  line.back() = '\n';
  std::fputs(line.c_str(), stdout);
  return complete;
}

// Prints how often each fault happened at each moment. Returns false if an expected pair never occurred.
bool summarize_faults(const Coverage& coverage) {
  bool complete = true;
  std::printf("%-14s", "");
  for (const char* const moment : kMomentNames) std::printf("%14s", moment);
  std::printf("\n");
  for (uint32_t fault = 0; fault < kFaultKinds; ++fault) {
    std::printf("%-14s", kFaultNames[fault]);
    // The coordinator is never lost for good during a recovery, since the job then needs it.
    const uint32_t expected =
        static_cast<Fault>(fault) == Fault::kDie ? static_cast<uint32_t>(Moment::kRecovery) : kMoments;
    for (uint32_t moment = 0; moment < kMoments; ++moment) {
      const uint64_t count = coverage.faults[fault][moment];
      std::printf("%14llu", static_cast<unsigned long long>(count));
      complete = complete && (count > 0 || moment >= expected);
    }
    std::printf("\n");
  }
  return complete;
}

// Prints how often each site in the cores (faults.h) was reached. Returns false if one was never reached.
bool summarize_sites() {
  bool complete = true;
  for (const faults::Site* site : faults::sites()) {
    if (site->kind == faults::Kind::kMutation) continue;
    const bool injects = site->kind == faults::Kind::kInject;
    const uint64_t count = injects ? site->taken : site->reached;
    complete = complete && count > 0;
    std::printf("%12llu  %s\n", static_cast<unsigned long long>(count), site->name);
  }
  return complete;
}

int run(const Arguments& arguments) {
  std::vector<kernels::Kernels> variants;
  for (const absl::string_view name : kernels::available_variants()) {
    variants.push_back(*kernels::Kernels::choose(name));
  }
  Report report(arguments.trace);
  for (uint64_t seed = arguments.first; seed < arguments.first + arguments.seeds; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    report.trace(0, scenario.to_string());
    Simulation(scenario, &variants[seed % variants.size()], &report).run();
    ++report.coverage.seeds;
    if (!report.failure()) continue;
    std::fprintf(stderr, "sim: seed %llu failed: %s\n  %s\n  replay: sim_test --seed %llu\n",
                 static_cast<unsigned long long>(seed), report.failure()->c_str(), scenario.to_string().c_str(),
                 static_cast<unsigned long long>(seed));
    return 1;
  }
  const bool counted = summarize(report.coverage);
  const bool met = summarize_faults(report.coverage);
  const bool reached = summarize_sites();
  if (arguments.trace) return 0;
  if (arguments.mutation_seeds > 0 && !find_mutations(arguments.mutation_seeds)) return 1;
  if (counted && ((met && reached) || arguments.seeds < kEnoughSeeds)) return 0;
  std::fputs("sim: something above is 0: too few seeds, or the scenarios no longer reach it\n", stderr);
  return 1;
}

}  // namespace
}  // namespace gleaner::sim

int main(int argc, char** argv) {
  gleaner::sim::Arguments arguments;
  if (!gleaner::sim::parse(argc, argv, arguments)) {
    std::fputs("usage: sim_test [--seeds N] [--first S] [--mutation-seeds M] | sim_test --seed S\n", stderr);
    return 2;
  }
  return gleaner::sim::run(arguments);
}
