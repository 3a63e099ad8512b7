#include "cli/timeline/timeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace gleaner::cli {
namespace {

using trace::Event;
using trace::Kind;

bool is_of_plan(const plan::Plan& plan, const Event& event) {
  if (event.tensor >= plan.tensors.size() || event.peer >= plan.members.size()) return false;
  if (trace::is_of_schedule(event.kind) && event.schedule >= plan.schedules.size()) return false;
  return event.partition < std::max<size_t>(1, plan.partitions_of(event.tensor).size());
}

bool is_request(Kind kind) { return kind == Kind::kRequested || kind == Kind::kReady || kind == Kind::kDone; }

// Identifies a frame: a contribution, a result or a slice, by the kind of its departure.
struct FrameKey {
  Kind departure = Kind::kPushed;
  uint64_t step = 0;  // of the strategy
  uint32_t tensor = 0, partition = 0, schedule = 0, schedule_step = 0, chunk = 0, from = 0, to = 0;

  friend bool operator==(const FrameKey&, const FrameKey&) = default;
  template <typename H>
  friend H AbslHashValue(H hash, const FrameKey& key) {
    return H::combine(std::move(hash), key.departure, key.step, key.tensor, key.partition, key.schedule,
                      key.schedule_step, key.chunk, key.from, key.to);
  }
};

// Returns the kind of the departure of the frame that arrives with an event of `kind`; nothing: no frame arrives.
std::optional<Kind> departure_of(Kind kind) {
  if (kind == Kind::kContributed) return Kind::kPushed;
  if (kind == Kind::kResult) return Kind::kAnswered;
  if (kind == Kind::kSliceArrived) return Kind::kSliceSent;
  return std::nullopt;
}

// Calls `sink(key, time)` for the departures or the arrivals of all frames between different members.
template <typename Sink>
void for_ends(const JobTrace& trace, bool departures, Sink sink) {
  for (const RankTrace& rank : trace.ranks) {
    for (const Event& event : rank.recording.events) {
      if (event.peer == rank.member || !is_of_plan(trace.plan, event)) continue;
      const bool departs =
          event.kind == Kind::kPushed || event.kind == Kind::kAnswered || event.kind == Kind::kSliceSent;
      const std::optional<Kind> departure =
          departures ? (departs ? std::optional(event.kind) : std::nullopt) : departure_of(event.kind);
      if (!departure.has_value()) continue;
      sink(FrameKey{.departure = *departure,
                    .step = event.step,
                    .tensor = event.tensor,
                    .partition = event.partition,
                    .schedule = event.schedule,
                    .schedule_step = event.schedule_step,
                    .chunk = event.chunk,
                    .from = departures ? rank.member : event.peer,
                    .to = departures ? event.peer : rank.member},
           event.nanoseconds);
    }
  }
}

}  // namespace

std::vector<Crossing> crossings(const JobTrace& trace) {
  absl::flat_hash_map<FrameKey, int64_t> departed;
  // Ignores frames that were sent twice, since it is unknown which copy arrived.
  constexpr int64_t kTwice = std::numeric_limits<int64_t>::min();
  for_ends(trace, true, [&](const FrameKey& key, int64_t time) {
    const auto [place, added] = departed.emplace(key, time);
    if (!added) place->second = kTwice;
  });
  std::vector<Crossing> found;
  for_ends(trace, false, [&](const FrameKey& key, int64_t time) {
    const auto start = departed.find(key);
    if (start == departed.end() || start->second == kTwice) return;
    found.push_back({key.from, key.to, start->second, time});
  });
  return found;
}

Timeline::Timeline(const JobTrace& trace)
    : trace_(trace),
      numbers_(trace),
      clocks_(fit_clocks(static_cast<uint32_t>(trace.plan.members.size()), crossings(trace))) {
  const Time zero = first_event();
  for (uint32_t i = 0; i < trace_.ranks.size(); ++i) {
    const RankTrace& rank = trace_.ranks[i];
    const std::optional<ClockFit>& clock = clocks_[rank.member];
    if (!rank.missing.empty() || !clock.has_value()) continue;
    for (const Event& event : rank.recording.events) {
      if (is_of_plan(plan(), event)) note(i, event, clock->common(event.nanoseconds) - zero);
    }
    if (!rank.recording.events.empty()) {
      note_extent(rank, clock->common(rank.recording.events.back().nanoseconds) - zero);
    }
  }
}

// Returns when the first event of the trace was, in nanoseconds since the reference's origin. It is often before that
// origin, which is the reference's first frame: a request comes before its frames, and other members may begin earlier.
// Returns 0 if no event belongs to the plan.
Time Timeline::first_event() const {
  std::optional<Time> first;
  for (const RankTrace& rank : trace_.ranks) {
    const std::optional<ClockFit>& clock = clocks_[rank.member];
    if (!rank.missing.empty() || !clock.has_value()) continue;
    for (const Event& event : rank.recording.events) {
      if (!is_of_plan(plan(), event)) continue;
      const Time time = clock->common(event.nanoseconds);
      first = std::min(first.value_or(time), time);
    }
  }
  return first.value_or(0);
}

TensorStepTimes& Timeline::entry_of(const Event& event) {
  TensorStepTimes& times = tensor_steps_[{event.tensor, numbers_.find(event)}];
  if (times.ranks.empty()) {
    times.ranks.resize(trace_.ranks.size());
    times.partitions.resize(plan().partitions_of(event.tensor).size());
    for (PartitionTimes& partition : times.partitions) partition.workers.resize(plan().workers);
  }
  return times;
}

void Timeline::note(uint32_t rank, const Event& event, Time time) {
  TensorStepTimes& times = entry_of(event);
  const uint32_t member = trace_.ranks[rank].member;
  if (is_request(event.kind)) {
    RequestTimes& request = times.ranks[rank];
    if (event.kind == Kind::kReady && request.ready != kNever) return;  // a later piece of the same request
    (event.kind == Kind::kRequested ? request.requested
     : event.kind == Kind::kReady   ? request.ready
                                    : request.done) = time;
  } else if (trace::is_of_gpu(event.kind)) {
    times.ranks[rank].gpu.note(event, time);
  } else if (event.partition < times.partitions.size()) {
    PartitionTimes& partition = times.partitions[event.partition];
    if (!trace::is_of_schedule(event.kind)) return note_contribution(member, event, time, partition);
    if (member >= plan().workers || event.peer >= plan().workers) return;
    times.schedule = event.schedule;
    partition.runs.resize(plan().workers);
    note_slice(member, event, time, partition);
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

void Timeline::note_slice(uint32_t worker, const Event& event, Time time, PartitionTimes& partition) {
  if (event.kind == Kind::kBegun || event.kind == Kind::kEnded) {
    RunTimes& run = partition.runs[worker];
    (event.kind == Kind::kBegun ? run.begun : run.ended) = time;
    return;
  }
  const bool is_sender = event.kind == Kind::kSliceSent;
  const uint32_t from = is_sender ? worker : event.peer, to = is_sender ? event.peer : worker;
  SliceTimes& slice = partition.slices[{from, to, event.schedule_step, event.chunk}];
  slice.bytes = event.bytes;
  slice.is_added = slice.is_added || event.kind == Kind::kSliceAdded;
  (is_sender ? slice.sent : event.kind == Kind::kSliceArrived ? slice.arrived : slice.received) = time;
}

void Timeline::note_extent(const RankTrace& rank, Time end) {
  if (rank.recording.dropped == 0 || end >= whole_until_) return;
  whole_until_ = end;
  full_ = rank_name(plan(), rank);
}

}  // namespace gleaner::cli
