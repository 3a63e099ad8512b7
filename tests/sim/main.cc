// sim_test [--seeds N] [--first S]: runs N random jobs through the protocol cores; the first that fails ends it and
// prints the command that replays it. sim_test --seed S: runs that one and prints every event.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "tests/sim/simulation.h"

namespace gleaner::sim {
namespace {

struct Arguments {
  uint64_t first = 1;
  uint64_t seeds = 1000;
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
    } else if (flag == "--seed") {
      arguments = {.first = value, .seeds = 1, .trace = true};
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

// Prints what happened; false when something that should have happened never did.
bool summarize(const Coverage& coverage) {
  const std::vector<std::pair<const char*, uint64_t>> parts = {
      {"seeds", coverage.seeds},
      {"events", coverage.events},
      {"frames", coverage.frames},
      {"sums", coverage.sums},
      {"duplicates", coverage.duplicates},
      {"disconnects", coverage.disconnects},
      {"lost", coverage.lost},
      {"survivors", coverage.survivors},
      {"repeated", coverage.repeated},
      {"resent", coverage.resent},
      {"late results", coverage.late_results},
      {"defers", coverage.defers},
      {"stalls", coverage.stalls},
      {"extensions", coverage.extensions},
      {"early commits", coverage.early_commits},
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
  const bool complete = summarize(report.coverage);
  if (complete || arguments.trace) return 0;
  std::fputs("sim: something above is 0: too few seeds, or the scenarios no longer reach it\n", stderr);
  return 1;
}

}  // namespace
}  // namespace gleaner::sim

int main(int argc, char** argv) {
  gleaner::sim::Arguments arguments;
  if (!gleaner::sim::parse(argc, argv, arguments)) {
    std::fputs("usage: sim_test [--seeds N] [--first S] | sim_test --seed S\n", stderr);
    return 2;
  }
  return gleaner::sim::run(arguments);
}
