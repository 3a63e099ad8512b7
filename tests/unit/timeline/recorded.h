// Recorded: builds the trace of a job event by event. Times are given in true milliseconds and recorded as each rank's
// clock shows them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/timeline/critical_path.h"
#include "cli/timeline/job_trace.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

class Recorded {
 public:
  // Makes a plan of tensors with one partition each; member owners[i] owns the i-th.
  Recorded(uint32_t workers, uint32_t summers, const std::vector<uint32_t>& owners, uint32_t local_ranks = 1) {
    plan::Plan& plan = trace.plan;
    plan.epoch = 1;
    plan.workers = workers;
    plan.local_ranks = local_ranks;
    plan.members.resize(workers + summers, {.bits_per_second = 1e9, .address = "10.0.0.1:7071", .since = 1});
    for (uint32_t i = 0; i < owners.size(); ++i) {
      plan.tensors.push_back({absl::StrCat("tensor ", i), 256, DataType::kFloat32, 0});
      plan.partitions.push_back({i, owners[i], 0, 1024});
      plan.first_partition.push_back(i);
    }
    plan.first_partition.push_back(static_cast<uint32_t>(owners.size()));
    for (uint32_t worker = 0; worker < workers; ++worker) {
      for (uint32_t rank = 0; rank < local_ranks; ++rank) trace.ranks.push_back({worker, rank, "", {}});
    }
    for (uint32_t summer = 0; summer < summers; ++summer) trace.ranks.push_back({workers + summer, 0, "", {}});
  }

  // Sets how far the rank's clock is ahead of the true time.
  void set_ahead(uint32_t rank, int64_t milliseconds) { ahead_[rank] = milliseconds; }

  void at(double milliseconds, uint32_t rank, trace::Kind kind, uint32_t tensor, uint64_t step, uint32_t peer = 0) {
    const auto nanoseconds = static_cast<int64_t>(milliseconds * 1e6) + ahead_[rank] * 1'000'000;
    trace.ranks[rank].recording.events.push_back(
        {nanoseconds, step, tensor, 0, 1024, static_cast<uint16_t>(peer), kind});
  }

  // Records all events of a tensor's push_pull, for one local rank. Worker w makes its request at requested[w], its
  // contribution is in the queue for `queue`, each frame takes `wire` (0 within a process), and the sum takes `sum`.
  // Returns the time at which each worker is done.
  std::vector<double> push_pull(uint32_t tensor, uint64_t step, const std::vector<double>& requested, double queue,
                                double wire, double sum) {
    using trace::Kind;
    const uint32_t owner = trace.plan.partitions[tensor].owner;
    const auto under_way = [&](uint32_t worker) { return worker == owner ? 0 : wire; };
    double last = 0;
    for (uint32_t w = 0; w < requested.size(); ++w) {
      at(requested[w], w, Kind::kRequested, tensor, step);
      at(requested[w], w, Kind::kReady, tensor, step);
      at(requested[w] + queue, w, Kind::kPushed, tensor, step, owner);
      at(requested[w] + queue + under_way(w), owner, Kind::kContributed, tensor, step, w);
      last = std::max(last, requested[w] + queue + under_way(w));
    }
    at(last, owner, Kind::kSumBegun, tensor, step);
    at(last + sum, owner, Kind::kSumEnded, tensor, step);
    std::vector<double> done;
    for (uint32_t w = 0; w < requested.size(); ++w) {
      at(last + sum, owner, Kind::kAnswered, tensor, step, w);
      done.push_back(last + sum + under_way(w));
      at(done[w], w, Kind::kResult, tensor, step, owner);
      at(done[w], w, Kind::kDone, tensor, step);
    }
    return done;
  }

  JobTrace trace;

 private:
  std::map<uint32_t, int64_t> ahead_;
};

// Returns the time of a stage in milliseconds.
inline double spent(const StepPath& path, Stage stage) { return static_cast<double>(path[stage]) / 1e6; }

}  // namespace gleaner::cli
