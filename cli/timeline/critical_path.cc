#include "cli/timeline/critical_path.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/timeline/receives.h"

namespace gleaner::cli {
namespace {

// A period in which a rank always had a request in flight.
struct Busy {
  Time begin = kNever;
  Time end = kNever;
  TensorStep last;  // of the request that ended last
};

class Walk {
 public:
  Walk(const Timeline& timeline, const Step& step)
      : timeline_(timeline), step_(step), now_(step.end), local_ranks_(timeline.plan().local_ranks) {}

  StepPath run();

 private:
  // A rank and the step of a tensor whose request was done at or before `now_`, on which the path depends.
  struct Done {
    uint32_t rank = 0;
    TensorStep tensor_step;
  };
  // A rank and the request that it made at `now_`.
  struct Asked {
    uint32_t rank = 0;
    TensorStep tensor_step;
  };
  // Each from_*() function adds the segments between the event that it is named after and an earlier one, moves now_
  // back, and returns the event where the walk continues; nothing if events are missing or the step has begun.
  std::optional<Done> last_done() const;
  std::optional<Asked> from_done(const Done& done);
  std::optional<Asked> from_result(const TensorStep& tensor_step, uint32_t partition, uint32_t worker);
  std::optional<Asked> from_arrival(const TensorStep& tensor_step, uint32_t partition, uint32_t worker);
  std::optional<Asked> from_sum(const Done& done, uint32_t worker);
  std::optional<Asked> from_receive(const TensorStep& tensor_step, uint32_t partition, uint32_t worker);
  std::optional<Asked> from_begun(const TensorStep& tensor_step, uint32_t partition, uint32_t worker, Time begun);
  std::optional<Asked> from_ready(const TensorStep& tensor_step, uint32_t worker);
  std::optional<Done> from_asked(const Asked& asked);
  const std::vector<Busy>& busy(uint32_t rank);
  void spend(Stage stage, Time since, Segment where);
  bool spend_by_gpu(Stage stage, Time since, const Segment& where, const GpuWork& gpu, bool of_result,
                    uint32_t last = UINT32_MAX);
  void spend_queued(Time ready, const Segment& where);
  void give_up();

  const Timeline& timeline_;
  const Step& step_;
  Time now_;  // the path from this time to the step's end is known
  const uint32_t local_ranks_;
  std::map<uint32_t, std::vector<Busy>> busy_;  // by rank
  StepPath path_;
};

StepPath Walk::run() {
  std::optional<Done> done = last_done();
  while (done.has_value() && now_ > step_.begin) {
    const std::optional<Asked> asked = from_done(*done);
    if (!asked.has_value() || now_ <= step_.begin) break;
    done = from_asked(*asked);
  }
  give_up();
  std::reverse(path_.segments.begin(), path_.segments.end());
  std::map<uint32_t, Time> waited;
  for (const Segment& segment : path_.segments) {
    if (segment.stage == Stage::kWait) waited[segment.member] += segment.end - segment.begin;
  }
  for (const auto& [worker, time] : waited) {
    if (!path_.slowest.has_value() || time > path_.slowest->waited) path_.slowest = {worker, time};
  }
  return std::move(path_);
}

// Adds a segment from `since`, or from the step's beginning if that is later, to now_. `where` has all but stage and
// times.
void Walk::spend(Stage stage, Time since, Segment where) {
  // Since clocks are uncertain, `since` may be after now_; the segment then has no length.
  where.begin = std::clamp(since, step_.begin, now_);
  where.end = now_;
  where.stage = stage;
  now_ = where.begin;
  if (where.begin == where.end) return;
  path_[stage] += where.end - where.begin;
  path_.segments.push_back(where);
}

// Adds segments of the work of a GPU after `since`, back to the begin of the first work: from now_ the work that ended
// last, then the work that ended last before it began, and so on. The time between is spent in `stage`. Returns whether
// there is such work. The work is that of GpuWork::last_before().
bool Walk::spend_by_gpu(Stage stage, Time since, const Segment& where, const GpuWork& gpu, bool of_result,
                        uint32_t last) {
  bool has_worked = false;
  for (const GpuSpan* span = gpu.last_before(now_, of_result, last);
       span != nullptr && now_ > std::max(since, step_.begin) && span->ended > since;
       span = gpu.last_before(now_, of_result, last)) {
    spend(stage, span->ended, where);
    Segment work = where;
    work.partition = span->partition;
    const Time before = now_;
    spend(stage_of(*span), std::max(span->begun, since), work);
    has_worked = true;
    if (now_ == before) break;  // the work took no time
  }
  return has_worked;
}

// Adds the segments from ready until the contribution to a partition was sent.
void Walk::spend_queued(Time ready, const Segment& where) {
  const TensorStepTimes& times = timeline_.times_of(*where.tensor_step);
  spend_by_gpu(Stage::kQueue, ready, where, times.ranks[timeline_.leader(where.member)].gpu, false, *where.partition);
  spend(Stage::kQueue, ready, where);
}

void Walk::give_up() { spend(Stage::kUnknown, step_.begin, {}); }

std::optional<Walk::Done> Walk::last_done() const {
  std::optional<Done> last;
  Time latest = kNever;
  for (const TensorStep& tensor_step : step_.tensor_steps) {
    const std::vector<RequestTimes>& ranks = timeline_.times_of(tensor_step).ranks;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank].ended() <= latest) continue;
      latest = ranks[rank].ended();
      last = Done{rank, tensor_step};
    }
  }
  return last;
}

std::optional<Walk::Asked> Walk::from_done(const Done& done) {
  const TensorStepTimes& times = timeline_.times_of(done.tensor_step);
  const uint32_t worker = timeline_.trace().ranks[done.rank].member;
  if (times.schedule.has_value()) return from_sum(done, worker);
  Time latest = kNever;
  uint32_t partition = 0;
  for (uint32_t p = 0; p < times.partitions.size(); ++p) {
    const Time result = times.partitions[p].workers[worker].result;
    if (result == kNever) return std::nullopt;
    if (result > latest) {
      latest = result;
      partition = p;
    }
  }
  if (latest == kNever) {  // a tensor without bytes
    spend(Stage::kLocal, times.ranks[done.rank].asked(), {.member = worker, .tensor_step = done.tensor_step});
    return Asked{done.rank, done.tensor_step};
  }
  const Segment where{.member = worker, .tensor_step = done.tensor_step};
  spend_by_gpu(Stage::kLocal, latest, where, times.ranks[done.rank].gpu, true);
  spend(Stage::kLocal, latest, where);
  return from_result(done.tensor_step, partition, worker);
}

std::optional<Walk::Asked> Walk::from_result(const TensorStep& tensor_step, uint32_t p, uint32_t worker) {
  const PartitionTimes& partition = timeline_.times_of(tensor_step).partitions[p];
  const ContributionTimes& mine = partition.workers[worker];
  const uint32_t owner = timeline_.owner(tensor_step, p);
  if (mine.answered == kNever || partition.sum_begun == kNever) {
    // The owner's events are missing, so the walk goes back to this worker's own contribution.
    if (mine.pushed == kNever) return std::nullopt;
    spend(Stage::kUnknown, mine.pushed, {.member = owner, .tensor_step = tensor_step, .partition = p});
    return from_arrival(tensor_step, p, worker);
  }
  spend(Stage::kWire, mine.answered, {.member = owner, .to = worker, .tensor_step = tensor_step, .partition = p});
  uint32_t last = 0;
  for (uint32_t w = 1; w < partition.workers.size(); ++w) {
    if (partition.workers[w].contributed > partition.workers[last].contributed) last = w;
  }
  spend(Stage::kSum, partition.workers[last].contributed,
        {.member = owner, .tensor_step = tensor_step, .partition = p});
  return from_arrival(tensor_step, p, last);
}

// Starts at the arrival of a worker's contribution at the owner.
std::optional<Walk::Asked> Walk::from_arrival(const TensorStep& tensor_step, uint32_t p, uint32_t worker) {
  const TensorStepTimes& times = timeline_.times_of(tensor_step);
  const ContributionTimes& part = times.partitions[p].workers[worker];
  const Time ready = times.ranks[timeline_.leader(worker)].ready;
  if (part.pushed == kNever || ready == kNever) return std::nullopt;
  spend(Stage::kWire, part.pushed,
        {.member = worker, .to = timeline_.owner(tensor_step, p), .tensor_step = tensor_step, .partition = p});
  spend_queued(ready, {.member = worker, .tensor_step = tensor_step, .partition = p});
  return from_ready(tensor_step, worker);
}

// Starts at the end of a request of a rank of the worker, whose sums a schedule made.
std::optional<Walk::Asked> Walk::from_sum(const Done& done, uint32_t worker) {
  const TensorStepTimes& times = timeline_.times_of(done.tensor_step);
  const std::vector<PartitionTimes>& partitions = times.partitions;
  Time latest = kNever;
  uint32_t last = 0;
  for (uint32_t p = 0; p < partitions.size(); ++p) {
    if (partitions[p].runs.empty() || partitions[p].runs[worker].ended == kNever) return std::nullopt;
    if (partitions[p].runs[worker].ended <= latest) continue;
    latest = partitions[p].runs[worker].ended;
    last = p;
  }
  const Segment where{.member = worker, .tensor_step = done.tensor_step};
  spend_by_gpu(Stage::kLocal, latest, where, times.ranks[done.rank].gpu, true);
  spend(Stage::kLocal, latest, where);
  return from_receive(done.tensor_step, last, worker);
}

// Starts where all receives of a worker's program for a partition have ended.
std::optional<Walk::Asked> Walk::from_receive(const TensorStep& tensor_step, uint32_t p, uint32_t worker) {
  const PartitionTimes& partition = timeline_.times_of(tensor_step).partitions[p];
  Segment where{.member = worker, .tensor_step = tensor_step, .partition = p};
  Receives receives(partition, worker);
  size_t left = receives.all().size();  // receives before the place where the walk is
  spend(Stage::kSum, receives.ended(left), where);
  while (left > 0) {
    const Receive& receive = receives.all()[--left];
    where.schedule_step = receive.slice.schedule_step;
    const Time began = partition.runs[worker].begun;
    if (receive.begun == kNever) {
      spend(Stage::kUnknown, began, where);
      return from_begun(tensor_step, p, worker, began);
    }
    spend(Stage::kSum, receive.begun, where);
    if (!receive.has_waited()) continue;
    if (receive.times.sent == kNever) {
      // The sender's events are missing, so the walk goes back to the begin of this worker's own program.
      spend(Stage::kUnknown, began, where);
      return from_begun(tensor_step, p, worker, began);
    }
    where.member = receive.slice.from;
    where.to = worker;
    spend(Stage::kWire, receive.times.sent, where);
    where.to.reset();
    worker = receive.slice.from;
    const uint32_t step = receive.slice.schedule_step;
    receives = Receives(partition, worker);
    left = receives.before(step);
    spend(Stage::kQueue, receives.ended(left), where);
  }
  return from_begun(tensor_step, p, worker, receives.ended(0));
}

// Starts where a worker's program for a partition begins.
std::optional<Walk::Asked> Walk::from_begun(const TensorStep& tensor_step, uint32_t p, uint32_t worker, Time begun) {
  const Time ready = timeline_.times_of(tensor_step).ranks[timeline_.leader(worker)].ready;
  if (begun == kNever || ready == kNever) return std::nullopt;
  spend_queued(ready, {.member = worker, .tensor_step = tensor_step, .partition = p});
  return from_ready(tensor_step, worker);
}

std::optional<Walk::Asked> Walk::from_ready(const TensorStep& tensor_step, uint32_t worker) {
  const TensorStepTimes& times = timeline_.times_of(tensor_step);
  std::vector<std::pair<Time, uint32_t>> ready;
  for (uint32_t w = 0; w < timeline_.plan().workers; ++w) {
    const Time time = times.ranks[timeline_.leader(w)].ready;
    if (time != kNever) ready.emplace_back(time, w);
  }
  std::sort(ready.begin(), ready.end());
  const auto [median, typical] = ready[(ready.size() - 1) / 2];
  spend(Stage::kWait, median, {.member = worker, .tensor_step = tensor_step});
  // The local rank of the median worker that made its request last.
  const uint32_t first = timeline_.leader(typical);
  uint32_t last = first;
  for (uint32_t rank = first; rank < first + local_ranks_; ++rank) {
    if (times.ranks[rank].asked() > times.ranks[last].asked()) last = rank;
  }
  const Time asked = times.ranks[last].asked();
  if (asked == kNever) return std::nullopt;
  const Segment where{.member = typical, .tensor_step = tensor_step};
  const bool by_gpu = spend_by_gpu(Stage::kLocal, asked, where, times.ranks[last].gpu, false);
  spend(by_gpu ? Stage::kQueue : Stage::kLocal, asked, where);
  return Asked{last, tensor_step};
}

std::optional<Walk::Done> Walk::from_asked(const Asked& asked) {
  const std::vector<Busy>& periods = busy(asked.rank);
  const auto after =
      std::partition_point(periods.begin(), periods.end(), [this](const Busy& period) { return period.begin < now_; });
  // Requests that were in flight at now_ do not matter: the new request was late because its gradient was not computed
  // yet. So the walk skips the busy periods that include now_.
  Segment where{.member = timeline_.trace().ranks[asked.rank].member, .tensor_step = asked.tensor_step};
  auto period = after;
  while (period != periods.begin() && std::prev(period)->end >= now_) --period;
  if (period == periods.begin()) {
    spend(Stage::kCompute, step_.begin, where);
    return std::nullopt;
  }
  const Busy& before = *std::prev(period);
  spend(Stage::kCompute, before.end, where);
  return Done{asked.rank, before.last};
}

const std::vector<Busy>& Walk::busy(uint32_t rank) {
  const auto [place, added] = busy_.try_emplace(rank);
  std::vector<Busy>& periods = place->second;
  if (!added) return periods;
  std::vector<Busy> requests;
  for (const TensorStep& tensor_step : step_.tensor_steps) {
    const RequestTimes& times = timeline_.times_of(tensor_step).ranks[rank];
    if (times.requested != kNever && times.done != kNever) {
      requests.push_back({times.asked(), times.ended(), tensor_step});
    }
  }
  std::ranges::sort(requests, {}, &Busy::begin);
  for (const Busy& request : requests) {
    if (periods.empty() || request.begin > periods.back().end) {
      periods.push_back(request);
    } else if (request.end > periods.back().end) {
      periods.back().end = request.end;
      periods.back().last = request.last;
    }
  }
  return periods;
}

}  // namespace

absl::string_view name_of(Stage stage) {
  constexpr std::array<absl::string_view, kStages> kNames = {
      "compute", "local", "queue", "wire", "sum", "wait", "reduce", "copy out", "copy in", "broadcast", "unknown"};
  return kNames[static_cast<size_t>(stage)];
}

Stage stage_of(const GpuSpan& span) {
  switch (span.begin_kind) {
    case trace::Kind::kReduceBegun:
      return Stage::kReduce;
    case trace::Kind::kCopyInBegun:
      return Stage::kCopyIn;
    case trace::Kind::kBroadcastBegun:
      return Stage::kBroadcast;
    default:
      return Stage::kCopyOut;
  }
}

StepPath walk(const Timeline& timeline, const Step& step) { return Walk(timeline, step).run(); }

}  // namespace gleaner::cli
