// Recorded: builds the trace of a job event by event. Times are given in true milliseconds and recorded as each rank's
// clock shows them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/timeline/critical_path.h"
#include "cli/timeline/job_trace.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

inline constexpr double kClose = 1e-3;  // a microsecond, in milliseconds

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
  // Returns the time at which each worker is done. `frame_step`: the step of frames, if it is not that of the requests.
  std::vector<double> push_pull(uint32_t tensor, uint64_t step, const std::vector<double>& requested, double queue,
                                double wire, double sum, std::optional<uint64_t> frame_step = std::nullopt) {
    using trace::Kind;
    const uint64_t number = step;
    if (frame_step.has_value()) step = *frame_step;
    const uint32_t owner = trace.plan.partitions[tensor].owner;
    const auto under_way = [&](uint32_t worker) { return worker == owner ? 0 : wire; };
    double last = 0;
    for (uint32_t w = 0; w < requested.size(); ++w) {
      at(requested[w], w, Kind::kRequested, tensor, number);
      at(requested[w], w, Kind::kReady, tensor, number);
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
      at(done[w], w, Kind::kDone, tensor, number);
    }
    return done;
  }

  // Records all events of a push_pull of a tensor on the GPUs of two workers, which summer 0 owns. The requests are
  // made at `requested`, and the GPUs make the tensor at `produced`. Then a copy to the host waits 1 ms for its turn
  // and takes 2 ms, the contribution waits 3 ms, each frame takes 4 ms, the sum 5 ms, and the copy to the GPU 6 ms, in
  // which the request ends.
  void gpu_push_pull(uint32_t tensor, uint64_t step, double requested, double produced) {
    using trace::Kind;
    constexpr uint32_t kOwner = 2;
    for (uint32_t w = 0; w < 2; ++w) {
      at(requested, w, Kind::kRequested, tensor, step);
      at(produced, w, Kind::kProduced, tensor, step);
      at(produced + 1, w, Kind::kCopyOutBegun, tensor, step);
      at(produced + 3, w, Kind::kCopyOutEnded, tensor, step);
      at(produced + 3, w, Kind::kReady, tensor, step);
      at(produced + 6, w, Kind::kPushed, tensor, step, kOwner);
      at(produced + 10, kOwner, Kind::kContributed, tensor, step, w);
    }
    at(produced + 10, kOwner, Kind::kSumBegun, tensor, step);
    at(produced + 15, kOwner, Kind::kSumEnded, tensor, step);
    for (uint32_t w = 0; w < 2; ++w) {
      at(produced + 15, kOwner, Kind::kAnswered, tensor, step, w);
      at(produced + 19, w, Kind::kResult, tensor, step, kOwner);
      at(produced + 19, w, Kind::kCopyInBegun, tensor, step);
      at(produced + 19, w, Kind::kDone, tensor, step);
      at(produced + 25, w, Kind::kCopyInEnded, tensor, step);
    }
  }

  // Records all events of a tensor's push_pull by schedule 0, a ring of two workers, each with one local rank. `step`
  // counts the push_pulls of the schedule. Worker w makes its request at requested[w], its first slice is in the queue
  // for `queue`, each slice takes `wire`, and to add or copy a slice takes `sum`.
  void ring(uint32_t tensor, uint64_t number, uint64_t step, const std::array<double, 2>& requested, double queue,
            double wire, double sum) {
    using trace::Kind;
    if (trace.plan.schedules.empty()) trace.plan.schedules = {{.algorithm = "ring"}};
    std::array<double, 2> sent{}, added{}, copied{};
    for (uint32_t w = 0; w < 2; ++w) {
      at(requested[w], w, Kind::kRequested, tensor, number);
      at(requested[w], w, Kind::kReady, tensor, number);
      at(requested[w], w, Kind::kBegun, tensor, step);
      sent[w] = requested[w] + queue;
      slice(sent[w], w, Kind::kSliceSent, tensor, step, 0, w);
    }
    for (uint32_t w = 0; w < 2; ++w) {
      slice(sent[1 - w] + wire, w, Kind::kSliceArrived, tensor, step, 0, 1 - w);
      added[w] = std::max(sent[1 - w] + wire, requested[w]) + sum;
      slice(added[w], w, Kind::kSliceAdded, tensor, step, 0, 1 - w);
      slice(added[w], w, Kind::kSliceSent, tensor, step, 1, 1 - w);
    }
    for (uint32_t w = 0; w < 2; ++w) {
      slice(added[1 - w] + wire, w, Kind::kSliceArrived, tensor, step, 1, w);
      copied[w] = std::max(added[1 - w] + wire, added[w]) + sum;
      slice(copied[w], w, Kind::kSliceCopied, tensor, step, 1, w);
      at(copied[w], w, Kind::kEnded, tensor, step);
      at(copied[w], w, Kind::kDone, tensor, number);
    }
  }

  JobTrace trace;

 private:
  // Records an event about a slice between two workers.
  void slice(double milliseconds, uint32_t worker, trace::Kind kind, uint32_t tensor, uint64_t step,
             uint32_t schedule_step, uint32_t chunk) {
    at(milliseconds, worker, kind, tensor, step, 1 - worker);
    trace::Event& event = trace.ranks[worker].recording.events.back();
    event.bytes = 512;
    event.schedule_step = schedule_step;
    event.chunk = chunk;
  }

  std::map<uint32_t, int64_t> ahead_;
};

// Returns the time of a stage in milliseconds.
inline double spent(const StepPath& path, Stage stage) { return static_cast<double>(path[stage]) / 1e6; }

}  // namespace gleaner::cli
