// The simulator of the protocol cores:
//   sim_test [--seeds N] [--first S] [--mutation-seeds M] [--jobs J]
//     Runs N random jobs, with the seeds from S on. Prints the commit (commit.h) and the counts of what happened, or
//     the first seed that fails and the command that replays it at this commit. Then runs jobs with mutations, each of
//     which breaks the protocol in one place (mutations.h), and fails if M jobs do not detect a mutation. Runs in J
//     processes, by default one for each processor; the output does not depend on J.
//   sim_test --seed S
//     Runs the job of this seed and prints every event.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "common/base/faults.h"
#include "tests/protocol_sim/commit.h"
#include "tests/protocol_sim/mutations.h"
#include "tests/protocol_sim/processes.h"
#include "tests/protocol_sim/simulation.h"

namespace gleaner::sim {
namespace {

constexpr uint64_t kUsualSeeds = 1000;    // with so many, no figure of the summary may be 0
constexpr uint64_t kEnoughSeeds = 10000;  // with so many, every site must be reached, and every fault at every moment

struct Arguments {
  uint64_t first = 1;
  uint64_t seeds = 1000;
  uint64_t mutation_seeds = 0;
  uint64_t jobs = processors();
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
    } else if (flag == "--jobs" && value > 0) {
      arguments.jobs = value;
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
      {"workers lost", coverage.workers_lost},
      {"lost alone", coverage.lost_alone},
      {"errors", coverage.errors},
      {"usurped", coverage.usurped},
      {"fenced", coverage.fenced},
      {"takeovers", coverage.takeovers},
      {"moved in flight", coverage.moved},
      {"handed on", coverage.handed},
      {"in place", coverage.in_place},
      {"scheduled sums", coverage.scheduled_sums},
      {"repeated slices", coverage.repeated_slices},
      {"duplicate slices", coverage.duplicate_slices},
      {"mixed plans", coverage.mixed_plans},
      {"workers of schedules lost", coverage.scheduled_losses},
      {"changes of strategies", coverage.strategy_changes},
      {"changes of masters", coverage.master_changes},
      {"held", coverage.held},
      {"lost in a hold", coverage.lost_in_hold},
  };
  // One job in about 1,500 reaches this, so few jobs may not.
  bool complete = coverage.ended_in_hold > 0 || coverage.seeds < kEnoughSeeds;
  std::string line = absl::StrCat("sim: commit ", kCommit, ",");
  for (const auto& [name, count] : parts) {
    absl::StrAppend(&line, " ", count, " ", name, ",");
    complete = complete && count > 0;
  }
  absl::StrAppend(&line, " ", coverage.ended_in_hold, " ended in a hold\n");
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
    // Too few jobs lose a worker for all moments, and too few faults happen at the beginning.
    const uint32_t expected =
        static_cast<Fault>(fault) == Fault::kWorker ? 0 : static_cast<uint32_t>(Moment::kBeginning);
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

// The result of the jobs that one process runs. Valid if all bytes are 0.
struct Result {
  Coverage coverage;
  uint64_t seed;  // the last seed that began
  bool failed;    // that seed failed
  char failure[1000];
};

// Runs one job in `stride`, in the order of their seeds, until one fails.
void run_some(const Arguments& arguments, uint64_t begin, uint64_t stride, Result& result) {
  std::vector<kernels::Kernels> variants;
  for (const absl::string_view name : kernels::available_variants()) {
    variants.push_back(*kernels::Kernels::choose(name));
  }
  Report report(arguments.trace);
  for (uint64_t seed = begin; seed < arguments.first + arguments.seeds && !report.failure(); seed += stride) {
    result.seed = seed;
    const Scenario scenario = draw_scenario(seed);
    report.trace(0, scenario.to_string());
    Simulation(scenario, &variants[seed % variants.size()], &report).run();
    ++report.coverage.seeds;
  }
  result.coverage = report.coverage;
  result.failed = report.failure().has_value();
  std::snprintf(result.failure, sizeof(result.failure), "%s", report.failure().value_or("").c_str());
}

// The counts of faults::Site.
struct SiteCounts {
  uint64_t reached, taken;
};

// Runs all jobs. Adds up the counts of all processes, and of the sites. Returns the first failure, if there is one; its
// text is empty if the processes could not run.
std::optional<Result> run_all(const Arguments& arguments, Coverage& coverage) {
  const auto& sites = faults::sites();
  const auto jobs = static_cast<size_t>(std::min(arguments.jobs, arguments.seeds));
  const Shared<Result> results(jobs);
  const Shared<SiteCounts> counts(jobs * sites.size());
  if (results.elements().empty() || counts.elements().empty()) return Result{};
  const auto ends = run_processes(jobs, jobs, [&](size_t i) {
    run_some(arguments, arguments.first + i, jobs, results.elements()[i]);
    for (size_t site = 0; site < sites.size(); ++site) {
      counts.elements()[i * sites.size() + site] = {sites[site]->reached, sites[site]->taken};
    }
  });
  if (!ends.has_value()) return Result{};
  std::optional<Result> first;
  for (size_t i = 0; i < jobs; ++i) {
    Result& result = results.elements()[i];
    if ((*ends)[i] != 0) {
      result.failed = true;
      std::snprintf(result.failure, sizeof(result.failure), "the simulator crashed");
    }
    if (result.failed && (!first.has_value() || result.seed < first->seed)) first = result;
    coverage += result.coverage;
    for (size_t site = 0; site < sites.size(); ++site) {
      sites[site]->reached += counts.elements()[i * sites.size() + site].reached;
      sites[site]->taken += counts.elements()[i * sites.size() + site].taken;
    }
  }
  return first;
}

int report_failure(const Result& result) {
  if (result.seed == 0) {
    std::perror("sim");
    return 1;
  }
  const auto seed = static_cast<unsigned long long>(result.seed);
  std::fprintf(stderr, "sim: seed %llu failed: %s\n  %s\n  replay: sim_test --seed %llu, built from commit %s\n", seed,
               result.failure, draw_scenario(result.seed).to_string().c_str(), seed, kCommit);
  return 1;
}

// Runs one job in this process, and prints its events and counts.
int replay(const Arguments& arguments) {
  Result result{};
  run_some(arguments, arguments.first, 1, result);
  if (result.failed) return report_failure(result);
  summarize(result.coverage);
  summarize_faults(result.coverage);
  summarize_sites();
  return 0;
}

int run(const Arguments& arguments) {
  if (arguments.trace) return replay(arguments);
  Coverage coverage;
  if (const auto failure = run_all(arguments, coverage)) return report_failure(*failure);
  const bool counted = summarize(coverage);
  const bool met = summarize_faults(coverage);
  const bool reached = summarize_sites();
  if (arguments.mutation_seeds > 0 && !find_mutations(arguments.mutation_seeds, arguments.jobs)) return 1;
  if ((counted || arguments.seeds < kUsualSeeds) && ((met && reached) || arguments.seeds < kEnoughSeeds)) return 0;
  std::fputs("sim: something above is 0: too few seeds, or the scenarios no longer reach it\n", stderr);
  return 1;
}

}  // namespace
}  // namespace gleaner::sim

int main(int argc, char** argv) {
  gleaner::sim::Arguments arguments;
  if (!gleaner::sim::parse(argc, argv, arguments)) {
    std::fputs("usage: sim_test [--seeds N] [--first S] [--mutation-seeds M] [--jobs J] | sim_test --seed S\n", stderr);
    return 2;
  }
  return gleaner::sim::run(arguments);
}
