#include "cli/timeline/timeline.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace gleaner::cli {
namespace {

using trace::Event;
using trace::Kind;

bool is_of_plan(const plan::Plan& plan, const Event& event) {
  if (event.tensor >= plan.tensors.size() || event.peer >= plan.members.size()) return false;
  return event.partition < std::max<size_t>(1, plan.partitions_of(event.tensor).size());
}

bool is_request(Kind kind) { return kind == Kind::kRequested || kind == Kind::kReady || kind == Kind::kDone; }

// Identifies a frame with a contribution (`push`) or a result, by partition, step, sender and receiver.
struct FrameKey {
  uint64_t step = 0;
  uint32_t tensor = 0, partition = 0, from = 0, to = 0;
  bool push = false;

  friend bool operator==(const FrameKey&, const FrameKey&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const FrameKey& key) {
    return H::combine(std::move(hash), key.step, key.tensor, key.partition, key.from, key.to, key.push);
  }
};

// Calls `sink(key, time)` for the departures or the arrivals of all frames between different members. `push` and
// `answer` are the kinds of these events for contributions and results.
template <typename Sink>
void for_ends(const JobTrace& trace, Kind push, Kind answer, bool departures, Sink sink) {
  for (const RankTrace& rank : trace.ranks) {
    for (const Event& event : rank.recording.events) {
      if ((event.kind != push && event.kind != answer) || event.peer == rank.member) continue;
      if (!is_of_plan(trace.plan, event)) continue;
      const uint32_t from = departures ? rank.member : event.peer;
      const uint32_t to = departures ? event.peer : rank.member;
      sink(FrameKey{event.step, event.tensor, event.partition, from, to, event.kind == push}, event.nanoseconds);
    }
  }
}

}  // namespace

std::vector<Crossing> crossings(const JobTrace& trace) {
  absl::flat_hash_map<FrameKey, int64_t> departed;
  // Ignores frames that were sent twice, since it is unknown which copy arrived.
  constexpr int64_t kTwice = std::numeric_limits<int64_t>::min();
  for_ends(trace, Kind::kPushed, Kind::kAnswered, true, [&](const FrameKey& key, int64_t time) {
    const auto [place, added] = departed.emplace(key, time);
    if (!added) place->second = kTwice;
  });
  std::vector<Crossing> found;
  for_ends(trace, Kind::kContributed, Kind::kResult, false, [&](const FrameKey& key, int64_t time) {
    const auto start = departed.find(key);
    if (start == departed.end() || start->second == kTwice) return;
    found.push_back({key.from, key.to, start->second, time});
  });
  return found;
}

Timeline::Timeline(const JobTrace& trace)
    : trace_(trace), clocks_(fit_clocks(static_cast<uint32_t>(trace.plan.members.size()), crossings(trace))) {
  for (uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    const RankTrace& rank = trace_.ranks[i];
    const std::optional<ClockFit>& clock = clocks_[rank.member];
    if (!rank.missing.empty() || !clock.has_value()) continue;
    for (const Event& event : rank.recording.events) {
      if (is_of_plan(plan(), event)) note(i, event, clock->common(event.nanoseconds));
    }
    note_extent(rank, *clock);
  }
}

void Timeline::note(uint32_t rank, const Event& event, Time time) {
  TensorStepTimes& times = tensor_steps_[{event.tensor, event.step}];
  if (times.ranks.empty()) {
    times.ranks.resize(trace_.ranks.size());
    times.partitions.resize(plan().partitions_of(event.tensor).size());
    for (PartitionTimes& partition : times.partitions) partition.workers.resize(plan().workers);
  }
  if (is_request(event.kind)) {
    RequestTimes& request = times.ranks[rank];
    if (event.kind == Kind::kReady && request.ready != kNever) return;  // a later piece of the same request
    (event.kind == Kind::kRequested ? request.requested
     : event.kind == Kind::kReady   ? request.ready
                                    : request.done) = time;
  } else if (event.partition < times.partitions.size()) {
    note_contribution(trace_.ranks[rank].member, event, time, times.partitions[event.partition]);
  }
}

void Timeline::note_contribution(uint32_t member, const Event& event, Time time, PartitionTimes& partition) {
  const bool at_worker = event.kind == Kind::kPushed || event.kind == Kind::kDeferred || event.kind == Kind::kResult;
  const uint32_t worker = at_worker ? member : event.peer;
  if (worker >= partition.workers.size()) return;
  ContributionTimes& part = partition.workers[worker];
  const auto set_first = [time](Time& place) {
    if (place == kNever) place = time;
  };
  switch (event.kind) {
    case Kind::kPushed:
      part.pushed = time;
      break;
    case Kind::kContributed:
      return set_first(part.contributed);
    case Kind::kAnswered:
      return set_first(part.answered);
    case Kind::kResult:
      return set_first(part.result);
    case Kind::kSumBegun:
      partition.sum_begun = time;
      break;
    case Kind::kSumEnded:
      partition.sum_ended = time;
      break;
    default:
      break;
  }
}

void Timeline::note_extent(const RankTrace& rank, const ClockFit& clock) {
  const auto& events = rank.recording.events;
  if (events.empty() || rank.recording.dropped == 0) return;
  const Time end = clock.common(events.back().nanoseconds);
  if (end >= whole_until_) return;
  whole_until_ = end;
  full_ = rank_name(plan(), rank);
}

}  // namespace gleaner::cli
