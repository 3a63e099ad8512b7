// gleaner bench push-pull: one rank of a job that sums data of which everybody can compute the bits.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/bench_data.h"
#include "cli/bench_oracle.h"
#include "cli/bench_session.h"
#include "cli/bench_tensors.h"
#include "cli/commands.h"
#include "cli/tensor_list.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/flags.h"

namespace gleaner::cli {
namespace {

struct Flags {
  std::string tensors;
  std::string bytes;
  std::string dtype;
  uint64_t steps = 10;
  uint64_t warmup = 1;
  uint64_t seed = 1;
  std::string transport;
  bool verify = false;
  bool json = false;
};

struct Result {
  std::vector<double> step_begins, step_ends;  // seconds of CLOCK_MONOTONIC
  std::vector<double> step_seconds() const {
    std::vector<double> seconds;
    for (size_t i = 0; i < step_ends.size(); ++i) seconds.push_back(step_ends[i] - step_begins[i]);
    return seconds;
  }
  std::string sha256;      // of the last step's sums
  std::string transports;  // by what each summer was reached
};

absl::StatusOr<std::vector<plan::Tensor>> tensors_of(const Flags& flags) {
  if (flags.tensors.empty() == flags.bytes.empty()) {
    return absl::InvalidArgumentError("give either --tensors FILE or --bytes N");
  }
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors,
                       flags.tensors.empty() ? one_tensor(flags.bytes) : read_tensors(flags.tensors));
  const std::optional<DataType> type = parse_data_type(flags.dtype);
  for (size_t i = 0; i < tensors.size(); ++i) {
    plan::Tensor& tensor = tensors[i];
    // What is generated last, the first layer's, is needed first.
    tensor.priority = static_cast<int32_t>(tensors.size() - 1 - i);
    if (!type) continue;
    const uint64_t bytes = tensor.bytes();
    if (bytes % size_of(*type) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' has ", bytes,
                                                     " bytes, which is no whole number of ", flags.dtype,
                                                     " elements; choose another --dtype or size"));
    }
    tensor.type = *type;
    tensor.elements = bytes / size_of(*type);
  }
  return tensors;
}

// One rank's part of the job, from the first push_pull to the last.
class Bench {
 public:
  // Each outlives it.
  Bench(const Flags& flags, BenchTensors& tensors, BenchSession& session, const Clock& clock)
      : flags_(flags), tensors_(tensors), session_(session), clock_(clock), handles_(tensors.size()) {}

  absl::StatusOr<Result> run() {
    GLN_RETURN_IF_ERROR(declare());
    std::optional<BenchOracle> oracle;
    if (flags_.verify) {
      GLN_ASSIGN_OR_RETURN(
          oracle, BenchOracle::make(flags_.seed, session_.topology().workers, session_.topology().local_ranks));
    }
    // Warming up takes the data of step 0, so that what is measured does not depend on it.
    for (uint64_t i = 0; i < flags_.warmup; ++i) GLN_RETURN_IF_ERROR(step(0, oracle).status());
    Result result;
    // So that a process that is looked at from outside keeps its size.
    const uint64_t expected = std::min<uint64_t>(flags_.steps, 1 << 20);
    result.step_begins.reserve(expected);
    result.step_ends.reserve(expected);
    for (uint64_t i = 0; i < flags_.steps; ++i) {
      GLN_ASSIGN_OR_RETURN(const Span span, step(i, oracle));
      result.step_begins.push_back(absl::ToDoubleSeconds(span.begin));
      result.step_ends.push_back(absl::ToDoubleSeconds(span.end));
    }
    GLN_ASSIGN_OR_RETURN(result.sha256, tensors_.output_sha256());
    return result;
  }

 private:
  absl::Status declare() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      GLN_ASSIGN_OR_RETURN(const uint32_t id, session_.declare(tensors_.tensor(i)));
      ids_.push_back(id);
    }
    GLN_ASSIGN_OR_RETURN(ready_, session_.declare({.name = "gleaner bench: all are ready", .elements = 1}));
    GLN_ASSIGN_OR_RETURN(over_, session_.declare({.name = "gleaner bench: all are done", .elements = 1}));
    return absl::OkStatus();
  }

  struct Span {
    absl::Duration begin, end;
  };
  absl::StatusOr<Span> step(uint64_t step, std::optional<BenchOracle>& oracle) {
    tensors_.fill_input(flags_.seed, step, session_.topology().rank);
    GLN_RETURN_IF_ERROR(wait_for_all(ready_));
    Span span;
    span.begin = clock_.since_start();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      GLN_ASSIGN_OR_RETURN(handles_[i],
                           session_.start_sum(ids_[i], tensors_.input(i).data(), tensors_.output(i).data()));
    }
    for (const uint64_t handle : handles_) GLN_RETURN_IF_ERROR(session_.wait(handle));
    span.end = clock_.since_start();
    // Ranks that share a machine would otherwise slow each other's last sums down by making the next step's data.
    GLN_RETURN_IF_ERROR(wait_for_all(over_));
    if (oracle) GLN_RETURN_IF_ERROR(tensors_.check_output(step, *oracle));
    return span;
  }

  // Some ranks are still making data: a sum that needs all of them keeps that out of the measurement.
  absl::Status wait_for_all(uint32_t barrier) {
    const float one = 1;
    float all = 0;
    GLN_ASSIGN_OR_RETURN(const uint64_t handle, session_.start_sum(barrier, &one, &all));
    return session_.wait(handle);
  }

  const Flags& flags_;
  BenchTensors& tensors_;
  BenchSession& session_;
  const Clock& clock_;
  std::vector<uint32_t> ids_;
  uint32_t ready_ = 0;  // barriers; two, so that each is one push_pull a step as other tensors are
  uint32_t over_ = 0;
  std::vector<uint64_t> handles_;
};

std::string to_json(const Flags& flags, const gln_topology& topology, uint64_t bytes, const Result& result) {
  nlohmann::ordered_json line;
  line["worker"] = topology.worker;
  line["workers"] = topology.workers;
  line["summers"] = topology.summers;
  line["local_ranks"] = topology.local_ranks;
  line["bytes"] = bytes;
  line["step_seconds"] = result.step_seconds();
  line["step_begins"] = result.step_begins;
  line["step_ends"] = result.step_ends;
  line["sha256"] = result.sha256;
  line["transports"] = result.transports;
  line["verified"] = flags.verify;
  return line.dump();
}

std::string to_text(const Flags& flags, const gln_topology& topology, uint64_t bytes, const Result& result) {
  std::vector<double> seconds = result.step_seconds();
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  return absl::StrFormat("worker %d of %d, %d summers: %s a step in %s (median of %d; %s to %s), %s/s, sha256 %s%s",
                         topology.worker, topology.workers, topology.summers, format_bytes(static_cast<double>(bytes)),
                         format_seconds(median), seconds.size(), format_seconds(seconds.front()),
                         format_seconds(seconds.back()), format_bytes(static_cast<double>(bytes) / median),
                         result.sha256, flags.verify ? ", every bit as expected" : "") +
         absl::StrFormat("\n  worker %d reached %s", topology.worker, result.transports);
}

absl::Status run_bench(const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> list, tensors_of(flags));
  GLN_ASSIGN_OR_RETURN(BenchTensors tensors, BenchTensors::make(std::move(list)));
  const SystemEnv system{LogOptions{}};
  // After the tensors: when it goes, nobody touches their memory any more.
  GLN_ASSIGN_OR_RETURN(BenchSession session, BenchSession::open(flags.transport));
  Bench bench(flags, tensors, session, *system.env().clock);
  GLN_ASSIGN_OR_RETURN(Result result, bench.run());
  GLN_ASSIGN_OR_RETURN(result.transports, session.transports());
  const gln_topology topology = session.topology();
  GLN_RETURN_IF_ERROR(session.close());
  if (topology.local_rank != 0) return absl::OkStatus();
  const auto format = flags.json ? to_json : to_text;
  // In one piece, so that the lines of several workers on one terminal stay whole.
  std::cout << format(flags, topology, tensors.bytes(), result) + "\n" << std::flush;
  if (!std::cout) return absl::UnavailableError("cannot write the result to standard output");
  return absl::OkStatus();
}

}  // namespace

void add_bench_push_pull(CLI::App& bench, Context& context) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = bench.add_subcommand(
      "push-pull",
      "One rank of a job that sums known data; who it is comes from GLEANER_*, as `gleaner run` sets them");
  command->add_option("--tensors", flags->tensors,
                      "JSON file: a list of {\"name\", \"bytes\"} in generation order, with \"dtype\" if wanted");
  command->add_option("--bytes", flags->bytes, "Instead of --tensors: one tensor of this size, 64MiB or 67108864");
  command->add_option("--steps", flags->steps, "Steps to measure")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--warmup", flags->warmup, "Steps before them")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 32))
      ->capture_default_str();
  command->add_option("--dtype", flags->dtype, "Of all tensors [default: as the file says, or fp32]")
      ->check(CLI::IsMember({"fp32", "fp64", "fp16", "bf16", "int32"}));
  command->add_option("--seed", flags->seed, "Of the data; the same for all ranks")->capture_default_str();
  command->add_option("--transports", flags->transport,
                      "What connections may go by: auto, shm, rdma, tcp or a list from best to worst, of which one "
                      "without tcp allows nothing else [default: GLEANER_TRANSPORTS, or auto]");
  flags::add_old_name(*command, "--transports", "--transport");
  command->add_flag("--verify", flags->verify, "Compute every sum here too, and compare every bit");
  command->add_flag("--json", flags->json, "One JSON line per worker");
  command->callback([flags, &context] {
    context.command = "bench push-pull";
    context.run = [flags] { return run_bench(*flags); };
  });
}

}  // namespace gleaner::cli
