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
  Call call;
};

// What one rank asked for, in order of time.
std::vector<Asked> asked_by(const Timeline& timeline, uint32_t rank) {
  std::vector<Asked> asked;
  for (const auto& [call, times] : timeline.calls()) {
    const RequestTimes& request = times.ranks[rank];
    if (request.requested != kNever) asked.push_back({request.requested, request.done, call});
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

// The tensor that begins steps.
std::optional<uint32_t> first_tensor(const std::vector<Asked>& asked) {
  std::map<uint32_t, int64_t> times, idle;  // by tensor: asked for; nanoseconds of nothing under way before
  Time busy_until = kNever;
  for (const Asked& one : asked) {
    ++times[one.call.tensor];
    if (busy_until != kNever && one.requested > busy_until) idle[one.call.tensor] += one.requested - busy_until;
    busy_until = std::max(busy_until, one.done == kNever ? one.requested : one.done);
  }
  if (times.empty()) return std::nullopt;
  const auto by_second = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (!idle.empty()) return std::max_element(idle.begin(), idle.end(), by_second)->first;
  return std::max_element(times.begin(), times.end(), by_second)->first;  // of several, the plan's first
}

// Why a call's events are not all there; members that did not answer are excused.
std::string lacking(const Timeline& timeline, const Call& call) {
  const CallTimes& times = timeline.call(call);
  const auto& ranks = timeline.trace().ranks;
  const auto there = [&](uint32_t rank) { return rank < ranks.size() && ranks[rank].missing.empty(); };
  for (uint32_t i = 0; i < times.ranks.size(); ++i) {
    if (ranks[i].member >= timeline.plan().workers || !there(i)) continue;
    if (times.ranks[i].requested == kNever || times.ranks[i].done == kNever) {
      return absl::StrCat("only part of it is in the trace of ", rank_name(timeline.plan(), ranks[i]));
    }
  }
  for (uint32_t p = 0; p < times.partitions.size(); ++p) {
    const PartitionTimes& partition = times.partitions[p];
    const uint32_t owner = timeline.owner(call, p);
    const bool owner_there = there(owner < timeline.plan().workers
                                       ? timeline.leader(owner)
                                       : timeline.leader(timeline.plan().workers) + owner - timeline.plan().workers);
    for (uint32_t w = 0; w < partition.workers.size(); ++w) {
      const PartTimes& part = partition.workers[w];
      if (there(timeline.leader(w)) && (part.pushed == kNever || part.result == kNever)) {
        return absl::StrCat("events are missing from the trace of ", member_name(timeline.plan(), w));
      }
      if (owner_there && (part.contributed == kNever || partition.sum_ended == kNever)) {
        return absl::StrCat("events are missing from the trace of ", member_name(timeline.plan(), owner));
      }
    }
  }
  return "";
}

void finish(const Timeline& timeline, Step& step) {
  for (const Call& call : step.calls) {
    step.number = std::max(step.number, call.step);
    for (const RequestTimes& rank : timeline.call(call).ranks) {
      if (rank.requested != kNever && (step.requested == kNever || rank.requested < step.requested)) {
        step.requested = rank.requested;
      }
      step.end = std::max(step.end, rank.done);
    }
    if (step.incomplete.empty()) step.incomplete = lacking(timeline, call);
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
    if (one.call.tensor == first) steps.emplace_back();
    if (!steps.empty()) steps.back().calls.push_back(one.call);
  }
  // The last one may go on: nothing says that it has ended but the next.
  Time before = kNever;
  for (Step& step : steps) {
    finish(timeline, step);
    step.begin = before == kNever ? step.requested : before;
    before = std::max(before, step.end);
  }
  return steps;
}

}  // namespace gleaner::cli
