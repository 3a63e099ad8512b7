// Arguments of the programs in this folder, and steps that are timed in the same way as those of `gleaner bench
// push-pull`.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace peers {

// --bytes-file names a file with the bytes of each tensor of a step, one number per line. --steps and --warmup are the
// numbers of measured steps and of steps before them. The meaning of the other arguments depends on the program.
struct Arguments {
  std::vector<uint64_t> bytes;
  uint64_t steps = 10, warmup = 2;
  std::string algorithm, address, store, results;
  int rank = 0, size = 1;
};

inline Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--bytes-file") {
      std::ifstream list(value);
      for (uint64_t one = 0; list >> one;) arguments.bytes.push_back(one);
    } else if (name == "--steps") {
      arguments.steps = std::stoull(value);
    } else if (name == "--warmup") {
      arguments.warmup = std::stoull(value);
    } else if (name == "--algorithm") {
      arguments.algorithm = value;
    } else if (name == "--address") {
      arguments.address = value;
    } else if (name == "--store") {
      arguments.store = value;
    } else if (name == "--results") {
      arguments.results = value;
    } else if (name == "--rank") {
      arguments.rank = std::stoi(value);
    } else if (name == "--size") {
      arguments.size = std::stoi(value);
    } else {
      std::fprintf(stderr, "%s: unknown option %s\n", argv[0], name.c_str());
      std::exit(2);
    }
  }
  if (arguments.bytes.empty()) {
    std::fprintf(stderr, "%s: --bytes-file is missing\n", argv[0]);
    std::exit(2);
  }
  return arguments;
}

// Returns the seconds of CLOCK_MONOTONIC, which all hosts of a lab share.
inline double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Writes one line of JSON: whether the sums were right, and when each step began and ended on this rank. Writes to the
// file named by the rank in the folder --results, or to standard output.
inline void print(const Arguments& arguments, int rank, bool right, const std::vector<double>& begins,
                  const std::vector<double>& ends) {
  std::FILE* out = stdout;
  if (!arguments.results.empty()) out = std::fopen((arguments.results + "/" + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) {
    std::perror(arguments.results.c_str());
    std::exit(1);
  }
  const auto list = [out](const char* name, const std::vector<double>& values) {
    std::fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < values.size(); ++i) std::fprintf(out, "%s%.9f", i == 0 ? "" : ",", values[i]);
    std::fprintf(out, "]");
  };
  std::fprintf(out, "{\"rank\":%d,\"right\":%s", rank, right ? "true" : "false");
  list("step_begins", begins);
  list("step_ends", ends);
  std::fprintf(out, "}\n");
  std::fflush(out);
}

// Times `reduce` in each step, and prints the results. The barriers keep a rank from preparing the data of the next
// step while other ranks still sum, since ranks on one machine would slow each other down. `gleaner bench push-pull`
// has the same barriers (cli/bench/push_pull_command.cc).
inline void run(const Arguments& arguments, std::vector<std::vector<float>>& tensors, int rank,
                const std::function<void()>& barrier, const std::function<void()>& reduce) {
  std::vector<double> begins, ends;
  for (uint64_t step = 0; step < arguments.warmup + arguments.steps; ++step) {
    for (auto& tensor : tensors) tensor.assign(tensor.size(), 1.0f);
    barrier();
    const double begin = now();
    reduce();
    const double end = now();
    barrier();
    if (step < arguments.warmup) continue;
    begins.push_back(begin);
    ends.push_back(end);
  }
  print(arguments, rank, tensors.back().back() == static_cast<float>(arguments.size), begins, ends);
}

inline std::vector<std::vector<float>> make_tensors(const Arguments& arguments) {
  std::vector<std::vector<float>> tensors;
  for (const uint64_t bytes : arguments.bytes) tensors.emplace_back(std::max<uint64_t>(1, bytes / sizeof(float)));
  return tensors;
}

}  // namespace peers
