#include "cli/timeline/steps.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"

namespace gleaner::cli {
namespace {

struct Asked {
  Time requested = kNever;
  Time done = kNever;
  TensorStep tensor_step;
};

// Returns the requests of one rank, in order of time.
std::vector<Asked> asked_by(const Timeline& timeline, uint32_t rank) {
  std::vector<Asked> asked;
  for (const auto& [tensor_step, times] : timeline.tensor_steps()) {
    const RequestTimes& request = times.ranks[rank];
    if (request.requested != kNever) asked.push_back({request.asked(), request.ended(), tensor_step});
  }
  std::sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) { return a.requested < b.requested; });
  return asked;
}

std::vector<Asked> asked_by_the_busiest(const Timeline& timeline) {
  std::vector<Asked> most;
  for (uint32_t worker = 0; worker < timeline.plan().workers; ++worker) {
    const uint32_t rank = timeline.leader(worker);
    if (rank >= timeline.trace().ranks.size()) break;
    std::vector<Asked> asked = asked_by(timeline, rank);
    if (asked.size() > most.size()) most = std::move(asked);
  }
  return most;
}

// Returns the tensor whose requests begin steps (steps.h).
std::optional<uint32_t> first_tensor(const std::vector<Asked>& asked) {
  // By tensor: the number of its requests, and the nanoseconds before them in which no request was in flight.
  std::map<uint32_t, int64_t> times, idle;
  Time busy_until = kNever;
  for (const Asked& one : asked) {
    ++times[one.tensor_step.tensor];
    if (busy_until != kNever && one.requested > busy_until) idle[one.tensor_step.tensor] += one.requested - busy_until;
    busy_until = std::max(busy_until, one.done == kNever ? one.requested : one.done);
  }
  if (times.empty()) return std::nullopt;
  const auto by_second = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (!idle.empty()) return std::max_element(idle.begin(), idle.end(), by_second)->first;
  return std::max_element(times.begin(), times.end(), by_second)->first;  // if several have the most, the plan's first
}

std::string missing_from(const Timeline& timeline, uint32_t member) {
  return absl::StrCat("events are missing from the trace of ", member_name(timeline.plan(), member));
}

// Returns lacking() of the partitions that a schedule sums.
std::string lacking_of_schedule(const Timeline& timeline, const TensorStepTimes& times) {
  const auto there = [&](uint32_t worker) { return timeline.trace().ranks[timeline.leader(worker)].missing.empty(); };
  for (const PartitionTimes& partition : times.partitions) {
    for (uint32_t w = 0; w < timeline.plan().workers; ++w) {
      const RunTimes run = partition.runs.empty() ? RunTimes() : partition.runs[w];
      if (there(w) && (run.begun == kNever || run.ended == kNever)) return missing_from(timeline, w);
    }
    for (const auto& [key, slice] : partition.slices) {
      if (there(key.from) && slice.sent == kNever) return missing_from(timeline, key.from);
      if (there(key.to) && (slice.arrived == kNever || slice.received == kNever)) return missing_from(timeline, key.to);
    }
  }
  return "";
}

// Returns the reason for which events of a tensor's step are missing; empty: none are. Members without a recording do
// not count as missing.
std::string lacking(const Timeline& timeline, const TensorStep& tensor_step) {
  const TensorStepTimes& times = timeline.times_of(tensor_step);
  const auto& ranks = timeline.trace().ranks;
  const auto there = [&](uint32_t rank) { return rank < ranks.size() && ranks[rank].missing.empty(); };
  for (uint32_t i = 0; i < times.ranks.size(); ++i) {
    if (ranks[i].member >= timeline.plan().workers || !there(i)) continue;
    if (times.ranks[i].requested == kNever || times.ranks[i].done == kNever) {
      return absl::StrCat("only part of it is in the trace of ", rank_name(timeline.plan(), ranks[i]));
    }
  }
  if (times.schedule.has_value()) return lacking_of_schedule(timeline, times);
  for (uint32_t p = 0; p < times.partitions.size(); ++p) {
    const PartitionTimes& partition = times.partitions[p];
    const uint32_t owner = timeline.owner(tensor_step, p);
    const bool owner_there = there(owner < timeline.plan().workers
                                       ? timeline.leader(owner)
                                       : timeline.leader(timeline.plan().workers) + owner - timeline.plan().workers);
    for (uint32_t w = 0; w < partition.workers.size(); ++w) {
      const ContributionTimes& part = partition.workers[w];
      if (there(timeline.leader(w)) && (part.pushed == kNever || part.result == kNever)) {
        return missing_from(timeline, w);
      }
      if (owner_there && (part.contributed == kNever || partition.sum_ended == kNever)) {
        return missing_from(timeline, owner);
      }
    }
  }
  return "";
}

void finish(const Timeline& timeline, Step& step) {
  for (const TensorStep& tensor_step : step.tensor_steps) {
    step.number = std::max(step.number, tensor_step.step);
    for (const RequestTimes& rank : timeline.times_of(tensor_step).ranks) {
      if (rank.requested != kNever && (step.requested == kNever || rank.asked() < step.requested)) {
        step.requested = rank.asked();
      }
      step.end = std::max(step.end, rank.ended());
    }
    if (step.incomplete.empty()) step.incomplete = lacking(timeline, tensor_step);
  }
  if (step.end > timeline.whole_until()) {
    step.incomplete = absl::StrCat("the buffer of ", timeline.full(), " was full");
  }
}

}  // namespace

std::vector<Step> find_steps(const Timeline& timeline) {
  const std::vector<Asked> asked = asked_by_the_busiest(timeline);
  const std::optional<uint32_t> first = first_tensor(asked);
  std::vector<Step> steps;
  for (const Asked& one : asked) {
    if (one.tensor_step.tensor == first) steps.emplace_back();
    if (!steps.empty()) steps.back().tensor_steps.push_back(one.tensor_step);
  }
  Time before = kNever;
  for (Step& step : steps) {
    finish(timeline, step);
    step.begin = before == kNever ? step.requested : before;
    before = std::max(before, step.end);
  }
  return steps;
}

}  // namespace gleaner::cli
