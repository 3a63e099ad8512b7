// gleaner bench push-pull: one rank of a job that sums generated data (data.h).
#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/bench/commands.h"
#include "cli/bench/data.h"
#include "cli/bench/expectations.h"
#include "cli/bench/oracle.h"
#include "cli/bench/schedule_oracle.h"
#include "cli/bench/session.h"
#include "cli/bench/tensors.h"
#include "cli/fleet_flags.h"
#include "cli/self/own_command.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/schedule_name.h"

namespace gleaner::cli {
namespace {

struct BenchPushPullFlags {
  TensorFlags tensors;
  std::string dtype;
  uint64_t steps = 10;
  uint64_t warmup = 1;
  uint64_t seed = 1;
  std::string transport;
  std::string strategy;  // that the coordinator must have; empty: any
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
  std::string transports;  // the transport to each summer
  std::string strategy;    // that sums the first tensor
};

absl::StatusOr<std::vector<plan::Tensor>> tensors_of(const BenchPushPullFlags& flags) {
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors, tensors_of(flags.tensors, parse_data_type(flags.dtype)));
  // The tensor that is generated last is that of the first layer, which is needed first.
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].priority = static_cast<int32_t>(tensors.size() - 1 - i);
  return tensors;
}

// Runs all steps of one rank.
class Bench {
 public:
  // All arguments must outlive the Bench.
  Bench(const BenchPushPullFlags& flags, BenchTensors& tensors, BenchSession& session, const Clock& clock)
      : flags_(flags), tensors_(tensors), session_(session), clock_(clock), handles_(tensors.size()) {}

  absl::StatusOr<Result> run() {
    GLN_RETURN_IF_ERROR(declare());
    if (flags_.verify) {
      GLN_ASSIGN_OR_RETURN(oracle_,
                           BenchOracle::make(flags_.seed, session_.info().workers, session_.info().local_ranks));
    }
    // Warm-up steps use the data of step 0, so their number does not change the data of the measured steps.
    for (uint64_t i = 0; i < flags_.warmup; ++i) GLN_RETURN_IF_ERROR(step(0).status());
    Result result;
    // Reserves memory so that the process does not grow during the steps, in which a test may measure its size.
    const uint64_t expected = std::min<uint64_t>(flags_.steps, 1 << 20);
    result.step_begins.reserve(expected);
    result.step_ends.reserve(expected);
    for (uint64_t i = 0; i < flags_.steps; ++i) {
      GLN_ASSIGN_OR_RETURN(const Span span, step(i));
      result.step_begins.push_back(absl::ToDoubleSeconds(span.begin));
      result.step_ends.push_back(absl::ToDoubleSeconds(span.end));
    }
    GLN_ASSIGN_OR_RETURN(result.sha256, tensors_.output_sha256());
    if (tensors_.size() > 0) {
      GLN_ASSIGN_OR_RETURN(const TensorPlan first, plan_of(0));
      result.strategy = first.algorithm();
    }
    return result;
  }

 private:
  absl::Status declare() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      GLN_ASSIGN_OR_RETURN(const uint32_t id, session_.declare(tensors_.tensor(i)));
      ids_.push_back(id);
    }
    expectations_.resize(static_cast<size_t>(session_.info().workers) * session_.info().local_ranks);
    GLN_ASSIGN_OR_RETURN(ready_,
                         session_.declare({.name = "gleaner bench: all are ready", .elements = expectations_.size()}));
    GLN_ASSIGN_OR_RETURN(over_, session_.declare({.name = "gleaner bench: all are done", .elements = 1}));
    return absl::OkStatus();
  }

  struct Span {
    absl::Duration begin, end;
  };
  // How push_pulls of a tensor are summed, from the one with this number on.
  struct Strategy {
    uint64_t from = 0;
    std::optional<ScheduleOracle> schedule;  // none: owners of partitions sum them
  };
  absl::StatusOr<Span> step(uint64_t step) {
    tensors_.fill_input(flags_.seed, step, session_.info().rank);
    GLN_ASSIGN_OR_RETURN(const std::vector<float> numbers, wait_until_all_are_ready());
    Span span;
    span.begin = clock_.since_start();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      GLN_ASSIGN_OR_RETURN(handles_[i],
                           session_.start_sum(ids_[i], tensors_.input(i).data(), tensors_.output(i).data()));
    }
    for (const uint64_t handle : handles_) GLN_RETURN_IF_ERROR(session_.wait(handle));
    span.end = clock_.since_start();
    // Without this wait, a rank that makes the data of its next step would slow down the last sums of a rank on the
    // same machine.
    GLN_RETURN_IF_ERROR(wait_until_all_are_done());
    if (!has_checked_strategies_) GLN_RETURN_IF_ERROR(check_strategies(numbers));
    if (oracle_) GLN_RETURN_IF_ERROR(check_output(step));
    ++push_pulls_;
    return span;
  }

  absl::Status check_output(uint64_t step) {
    GLN_RETURN_IF_ERROR(follow_strategies());
    return tensors_.check_output(
        step, [&](size_t tensor, uint64_t first, ConstBytes sum) -> absl::StatusOr<std::optional<Mismatch>> {
          const DataType type = tensors_.tensor(tensor).type;
          const auto in_force = std::ranges::find_if(strategies_[tensor].rbegin(), strategies_[tensor].rend(),
                                                     [&](const Strategy& each) { return each.from <= push_pulls_; });
          if (in_force->schedule) return in_force->schedule->check(type, step, first, sum);
          return oracle_->check(type, step, first, sum);
        });
  }

  // Requires that the first step has brought the tensors into a plan.
  absl::StatusOr<TensorPlan> plan_of(size_t tensor) {
    GLN_ASSIGN_OR_RETURN(const std::string text, session_.tensor_plan(ids_[tensor]));
    return parse_tensor_plan(text);
  }

  // Adds the strategies of tensors that have changed them since the last step. Two changes of one tensor within a step
  // would hide the first of them; the coordinator waits longer between changes.
  absl::Status follow_strategies() {
    strategies_.resize(tensors_.size());
    const gln_rank_info& info = session_.info();
    for (size_t i = 0; i < tensors_.size(); ++i) {
      GLN_ASSIGN_OR_RETURN(const TensorPlan plan, plan_of(i));
      if (!strategies_[i].empty() && strategies_[i].back().from == plan.from) continue;
      strategies_[i].push_back({plan.from, std::nullopt});
      if (!plan.schedule.has_value()) continue;
      GLN_ASSIGN_OR_RETURN(strategies_[i].back().schedule,
                           ScheduleOracle::make(flags_.seed, info.workers, info.local_ranks, plan));
    }
    return absl::OkStatus();
  }

  // Waits for a sum to which all ranks contribute, so that the measurement does not include the time in which other
  // ranks still make data. Returns the numbers of their expectations, by rank.
  absl::StatusOr<std::vector<float>> wait_until_all_are_ready() {
    expectations_[session_.info().rank] = number_of(flags_.strategy);
    std::vector<float> all(expectations_.size());
    GLN_ASSIGN_OR_RETURN(const uint64_t handle, session_.start_sum(ready_, expectations_.data(), all.data()));
    GLN_RETURN_IF_ERROR(session_.wait(handle));
    return all;
  }

  absl::Status wait_until_all_are_done() {
    const float one = 1;
    float all = 0;
    GLN_ASSIGN_OR_RETURN(const uint64_t handle, session_.start_sum(over_, &one, &all));
    return session_.wait(handle);
  }

  // Checks that the coordinator has the tensors summed as every rank expects. Requires that a step has brought them
  // into a plan.
  absl::Status check_strategies(const std::vector<float>& numbers) {
    has_checked_strategies_ = true;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      GLN_ASSIGN_OR_RETURN(const TensorPlan plan, plan_of(i));
      absl::Status status =
          check_expectations(numbers, session_.info().local_ranks, tensors_.tensor(i).name, plan.algorithm());
      if (status.ok()) continue;
      // The end of the first rank fails the job, so every rank waits here until all have found the mismatch. An error
      // of this wait comes from another rank's end, for the same reason.
      wait_until_all_are_ready().status().IgnoreError();
      return status;
    }
    return absl::OkStatus();
  }

  const BenchPushPullFlags& flags_;
  BenchTensors& tensors_;
  BenchSession& session_;
  const Clock& clock_;
  std::vector<uint32_t> ids_;
  // The tensors of the two barriers. There are two so that each is summed once per step, like all other tensors.
  uint32_t ready_ = 0;
  uint32_t over_ = 0;
  bool has_checked_strategies_ = false;
  std::vector<float> expectations_;  // by rank: this rank's number, and zeros
  std::vector<uint64_t> handles_;
  uint64_t push_pulls_ = 0;                        // of each tensor, warm-up included
  std::optional<BenchOracle> oracle_;              // with --verify
  std::vector<std::vector<Strategy>> strategies_;  // by tensor, in the order of their first push_pulls
};

std::string json_of(const BenchPushPullFlags& flags, const gln_rank_info& info, uint64_t bytes, const Result& result) {
  nlohmann::ordered_json line;
  line["worker"] = info.worker;
  line["workers"] = info.workers;
  line["summers"] = info.summers;
  line["local_ranks"] = info.local_ranks;
  line["bytes"] = bytes;
  line["step_seconds"] = result.step_seconds();
  line["step_begins"] = result.step_begins;
  line["step_ends"] = result.step_ends;
  line["sha256"] = result.sha256;
  line["transports"] = result.transports;
  line["strategy"] = result.strategy;
  line["verified"] = flags.verify;
  return line.dump();
}

std::string text_of(const BenchPushPullFlags& flags, const gln_rank_info& info, uint64_t bytes, const Result& result) {
  std::vector<double> seconds = result.step_seconds();
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  return absl::StrFormat("worker %d of %d, %s: %s a step in %s (median of %d; %s to %s), %s/s, sha256 %s%s",
                         info.worker, info.workers, counted(info.summers, "summer"),
                         format_bytes(static_cast<double>(bytes)), format_seconds(median), seconds.size(),
                         format_seconds(seconds.front()), format_seconds(seconds.back()),
                         format_bytes(static_cast<double>(bytes) / median), result.sha256,
                         flags.verify ? ", every bit as expected" : "") +
         absl::StrFormat("\n  worker %d reached %s", info.worker, result.transports);
}

absl::Status run_bench(const BenchPushPullFlags& flags) {
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> list, tensors_of(flags));
  GLN_ASSIGN_OR_RETURN(BenchTensors tensors, BenchTensors::make(std::move(list)));
  const SystemEnv system{LogOptions{}};
  // Declared after the tensors, so that it is destroyed first: the session uses their memory until then.
  GLN_ASSIGN_OR_RETURN(BenchSession session, BenchSession::open(flags.transport));
  Bench bench(flags, tensors, session, *system.env().clock);
  GLN_ASSIGN_OR_RETURN(Result result, bench.run());
  GLN_ASSIGN_OR_RETURN(result.transports, session.transports());
  const gln_rank_info info = session.info();
  GLN_RETURN_IF_ERROR(session.close());
  if (info.local_rank != 0) return absl::OkStatus();
  const auto format = flags.json ? json_of : text_of;
  // Written in one piece, so that the lines of several workers on one terminal stay whole.
  std::cout << format(flags, info, tensors.bytes(), result) + "\n" << std::flush;
  if (!std::cout) return absl::UnavailableError("cannot write the result to standard output");
  return absl::OkStatus();
}

}  // namespace

void add_bench_push_pull(flags::Command& bench, Context& context) {
  auto flags = std::make_shared<BenchPushPullFlags>();
  flags::Command command = bench.add_command(
      "push-pull",
      absl::StrCat("Run one rank of a job that sums known data; the variables GLEANER_* say which rank, as `",
                   own_command("run"), "` sets them"));
  add_tensor_flags(command, flags->tensors);
  command.add_number("--steps", flags->steps, "Steps to measure")
      .between(uint64_t{1}, uint64_t{1} << 32)
      .show_default();
  command.add_number("--warmup", flags->warmup, "Steps before the measured steps")
      .between(uint64_t{0}, uint64_t{1} << 32)
      .show_default();
  add_data_type_flag(command, flags->dtype, "Data type of all tensors [default: that of the file, or fp32]");
  command.add_number("--seed", flags->seed, "Seed of the data; the same for all ranks").show_default();
  command
      .add_text("--strategy", flags->strategy,
                "The strategy by which this rank expects the coordinator to have every tensor summed; if it does not, "
                "all ranks end with an error [default: any]")
      .one_of(expected_strategies());
  add_transports_flag(command, flags->transport);
  command.add_old_name("--transports", "--transport");
  command.add_switch("--verify", flags->verify, "Compute every sum in this process, too, and compare every bit");
  command.add_switch("--json", flags->json, "Print one JSON line per worker");
  command.on_chosen([flags, &context] { context.run = [flags] { return run_bench(*flags); }; });
}

}  // namespace gleaner::cli
