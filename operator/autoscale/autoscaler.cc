#include "operator/autoscale/autoscaler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"

namespace gleaner::autoscale {
namespace {

constexpr absl::Duration kLongestNodePause = absl::Minutes(10);
constexpr absl::Duration kLongestPatience = absl::Hours(1);

std::string percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::vector<uint32_t> removed_summers(const Verdict& verdict) {
  std::vector<uint32_t> indices;
  for (const Removal& removal : verdict.remove) indices.push_back(removal.index);
  return indices;
}

uint32_t staying(const Job& job, const Verdict& verdict) {
  const std::vector<uint32_t> indices = removed_summers(verdict);
  return static_cast<uint32_t>(std::count_if(job.summers.begin(), job.summers.end(), [&](const Summer& summer) {
    return !summer.leaving && std::find(indices.begin(), indices.end(), summer.index) == indices.end();
  }));
}

std::string hold_sentence(Code code, absl::Duration fresh) {
  switch (code) {
    case Code::kNoMetrics:
      return "Prometheus has no step time or no waiting time of this job: the summers stay as they are";
    case Code::kStaleMetrics:
      return absl::StrCat("the job's metrics are older than ", absl::FormatDuration(fresh),
                          ": the summers stay as they are");
    default:
      return "the job has no tensors yet: the summers stay as they are";
  }
}

std::string worth_sentence(const Bidder& bidder, const Bid& bid, bool measured) {
  return absl::StrCat(
      "a summer with ", format_bits_per_second(bid.machine->bits_per_second), " on ", bid.machine->node, " saves ",
      percent(bid.share), " of the step of ", format_seconds(bidder.worth->step_seconds()),
      measured ? absl::StrCat(", ", format_seconds(bidder.worth->exposed_seconds()), " of which wait for sums")
               : " (by the bandwidth model)");
}

}  // namespace

std::map<std::string, Verdict> Autoscaler::round(const std::vector<Job>& jobs, absl::Duration now) {
  std::map<std::string, Verdict> verdicts;
  std::map<std::string, Memory> known;
  for (const Job& job : jobs) {
    const auto found = memory_.find(job.key);
    Memory& memory = known[job.key];
    memory = found != memory_.end() ? std::move(found->second) : initial_memory(job, now);
    notice_gone(job, memory, now);
    repeat_removals(job, memory, verdicts[job.key]);
    shrink(job, memory, now, verdicts[job.key]);
    drop_idle(job, memory, now, verdicts[job.key]);
  }
  memory_ = std::move(known);

  std::vector<Worth> worths;
  worths.reserve(jobs.size());  // bidders hold pointers to its elements
  std::vector<Bidder> bidders;
  for (const Job& job : jobs) {
    Verdict& verdict = verdicts[job.key];
    worths.emplace_back(job, settings_, removed_summers(verdict));
    Bidder bidder{&job, &worths.back(), &verdict, {}, staying(job, verdict)};
    verdict.wanted = bidder.summers;
    if (may_grow(job, memory_[job.key], worths.back(), now, bidder)) bidders.push_back(std::move(bidder));
  }
  assign_machines(bidders, now);
  for (const Bidder& bidder : bidders) contest(bidder, jobs, verdicts, now);
  for (const Job& job : jobs) {
    const Verdict& verdict = verdicts[job.key];
    const bool goes_on = verdict.add.has_value() || verdict.code == Code::kPausing;
    if (!job.summers.empty() && !goes_on) memory_[job.key].beginning = false;
  }
  return verdicts;
}

// Returns the state of a job that this Autoscaler sees for the first time. The age of the youngest summer gives the
// time of the last addition, even if the job began with that summer or an earlier leader added it.
Autoscaler::Memory Autoscaler::initial_memory(const Job& job, absl::Duration now) const {
  Memory memory;
  memory.patience = settings_.idle;
  memory.beginning = job.summers.empty();
  for (const Summer& summer : job.summers) memory.added = std::max(memory.added, now - summer.age);
  return memory;
}

void Autoscaler::pause_node(Memory& memory, const std::string& node, absl::Duration now) const {
  if (node.empty()) return;
  NodePause& pause = memory.pauses[node];
  const bool again = pause.length > absl::ZeroDuration() && now - pause.until < kLongestNodePause;
  pause.length = again ? std::min(2 * pause.length, kLongestNodePause) : settings_.return_pause;
  pause.until = now + pause.length;
}

// Finds running summers that are gone and were not told to leave: they yielded to the owners of their machines, or were
// lost. In both cases the machine gets no summer of this job for a while.
void Autoscaler::notice_gone(const Job& job, Memory& memory, absl::Duration now) const {
  std::map<uint32_t, std::string> before = std::move(memory.running);
  memory.running.clear();
  for (const Summer& summer : job.summers) {
    before.erase(summer.index);
    if (summer.running && !summer.leaving) memory.running[summer.index] = summer.node;
  }
  for (const auto& [index, node] : before) {
    if (!memory.removals.contains(index)) pause_node(memory, node, now);
  }
}

// Repeats removals of earlier rounds until the summer is gone. A removal is never revoked.
void Autoscaler::repeat_removals(const Job& job, Memory& memory, Verdict& verdict) const {
  std::map<uint32_t, Removal> before = std::move(memory.removals);
  memory.removals.clear();
  for (const Summer& summer : job.summers) {
    const auto found = before.find(summer.index);
    if (found != before.end()) remove(memory, verdict, std::move(found->second));
  }
}

void Autoscaler::remove(Memory& memory, Verdict& verdict, Removal removal) {
  if (verdict.remove.empty()) {
    verdict.code = removal.code;
    verdict.why = removal.why;
  }
  memory.removals[removal.index] = removal;
  verdict.remove.push_back(std::move(removal));
}

// Removes summers for reasons that do not depend on their gain, without a delay.
void Autoscaler::shrink(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const {
  for (const Summer& summer : job.summers) {
    if (summer.leaving || memory.removals.contains(summer.index)) continue;
    if (summer.suitability.has_value() && !summer.suitability->fits) {
      remove(memory, verdict,
             {summer.index, Code::kOwnersNeedIt,
              absl::StrCat("machine ", summer.node, " is needed by its owners: ", summer.suitability->why_not)});
      pause_node(memory, summer.node, now);
    } else if (!summer.running && summer.age > settings_.start_patience) {
      remove(memory, verdict,
             {summer.index, Code::kDidNotStart,
              absl::StrCat("the summer does not run after ", absl::FormatDuration(settings_.start_patience))});
      pause_node(memory, summer.node.empty() ? memory.added_node : summer.node, now);
    }
  }
  for (uint32_t left = staying(job, verdict); left > job.max; --left) {
    const Worth worth(job, settings_, removed_summers(verdict));
    const Summer* least = nullptr;
    for (const Summer& summer : job.summers) {
      const std::vector<uint32_t> gone = removed_summers(verdict);
      if (summer.leaving || std::find(gone.begin(), gone.end(), summer.index) != gone.end()) continue;
      if (least == nullptr || worth.loss_seconds(summer.index) <= worth.loss_seconds(least->index)) least = &summer;
    }
    remove(memory, verdict,
           {least->index, Code::kAboveMaximum, absl::StrCat("the job allows ", job.max, " summers at most")});
  }
}

// Removes at most one summer, which has saved too little for memory.patience.
void Autoscaler::drop_idle(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const {
  const Worth worth(job, settings_, removed_summers(verdict));
  if (worth.unknown().has_value() || staying(job, verdict) <= job.min) {
    memory.idle_since.clear();
    return;
  }
  const Summer* least = nullptr;
  double least_seconds = 0;
  absl::flat_hash_map<uint32_t, absl::Duration> idle;
  for (const Summer& summer : job.summers) {
    const double seconds = worth.loss_seconds(summer.index);
    if (summer.leaving || !summer.running || worth.share(seconds) >= settings_.min_loss) continue;
    const auto since = memory.idle_since.find(summer.index);
    idle[summer.index] = since == memory.idle_since.end() ? now : since->second;
    if (now - idle[summer.index] < memory.patience) continue;
    // Among equals the youngest summer is removed.
    if (least == nullptr || seconds <= least_seconds) {
      least = &summer;
      least_seconds = seconds;
    }
  }
  memory.idle_since = std::move(idle);
  if (least == nullptr || !verdict.remove.empty()) return;
  remove(memory, verdict,
         {least->index, Code::kBuysNothing,
          absl::StrCat("for ", absl::FormatDuration(memory.patience), " the summer on ", least->node,
                       " has saved less than ", percent(settings_.min_loss), " of the step")});
  memory.gave_up_idle = now;
  memory.idle_since.clear();  // without it, the other summers may save more
}

bool Autoscaler::is_paused(const Memory& memory, const Candidate& machine, absl::Duration now) {
  const auto pause = memory.pauses.find(machine.node);
  return pause != memory.pauses.end() && now < pause->second.until;
}

bool Autoscaler::is_measured_free(const Job& job, const Candidate& machine) const {
  if (!settings_.measured) return true;
  const auto enough = [this](const std::optional<Reading>& reading, double least) {
    return reading.has_value() && reading->age <= settings_.fresh && reading->value >= least;
  };
  // At least half of the bandwidth offered must have been spare throughout the window.
  return enough(machine.spare_cpus, job.summer_cpus) &&
         enough(machine.spare_bits_per_second, machine.bits_per_second / 2);
}

bool Autoscaler::is_usable(const Job& job, const Memory& memory, const Candidate& machine, absl::Duration now) const {
  return !is_paused(memory, machine, now) && is_measured_free(job, machine);
}

bool Autoscaler::is_pausing(const Job& job, const Memory& memory, absl::Duration now) const {
  if (now - memory.added >= settings_.grow_pause) return false;
  return !memory.beginning ||
         std::any_of(job.summers.begin(), job.summers.end(), [](const Summer& summer) { return summer.node.empty(); });
}

bool Autoscaler::may_grow(const Job& job, const Memory& memory, const Worth& worth, absl::Duration now,
                          Bidder& bidder) const {
  Verdict& verdict = *bidder.verdict;
  if (!verdict.remove.empty()) return false;
  const auto say = [&verdict](Code code, std::string why) {
    verdict.code = code;
    verdict.why = std::move(why);
    return false;
  };
  if (bidder.summers >= job.max) return say(Code::kAtMaximum, absl::StrCat("the job allows ", job.max, " summers"));
  if (worth.unknown().has_value() && !bidder.below_minimum()) {
    return say(*worth.unknown(), hold_sentence(*worth.unknown(), settings_.fresh));
  }
  for (const Candidate& machine : job.candidates) {
    if (is_usable(job, memory, machine, now)) bidder.machines.push_back(&machine);
  }
  bidder.pausing = is_pausing(job, memory, now);
  return true;
}

bool Autoscaler::is_worth_it(const Bid& bid) const {
  return bid.bidder->below_minimum() || bid.share >= settings_.min_gain;
}

void Autoscaler::accept(const Bid& bid, absl::Duration now) {
  const Bidder& bidder = *bid.bidder;
  Verdict& verdict = *bidder.verdict;
  Memory& memory = memory_[bidder.job->key];
  verdict.add = *bid.machine;
  verdict.wanted = bidder.summers + 1;
  verdict.share = bid.share;
  verdict.code = bidder.below_minimum() ? Code::kBelowMinimum : Code::kWorthIt;
  verdict.why = worth_sentence(bidder, bid, settings_.measured);
  if (bidder.below_minimum()) {
    verdict.why = absl::StrCat("the job asks for at least ", bidder.job->min, " summers; ", verdict.why);
  }
  // An addition soon after an idle summer was removed shows that the removal was wrong, so the next removal waits
  // longer.
  const bool regretted = now - memory.gave_up_idle < 2 * memory.patience;
  memory.patience = regretted ? std::min(2 * memory.patience, kLongestPatience) : settings_.idle;
  memory.added = now;
  memory.added_node = bid.machine->node;
}

void Autoscaler::assign_machines(std::vector<Bidder>& bidders, absl::Duration now) {
  absl::flat_hash_set<std::string> taken;
  std::vector<const Bidder*> waiting;
  waiting.reserve(bidders.size());
  for (const Bidder& bidder : bidders) waiting.push_back(&bidder);
  while (true) {
    std::optional<Bid> best;
    for (const Bidder* bidder : waiting) {
      if (bidder->pausing) continue;
      const std::optional<Bid> bid = best_bid(*bidder, taken);
      if (!bid.has_value() || !is_worth_it(*bid)) continue;
      if (!best.has_value() || goes_before(*bid, *best)) best = bid;
    }
    if (!best.has_value()) break;
    accept(*best, now);
    taken.insert(best->machine->node);
    std::erase(waiting, best->bidder);
  }
  for (const Bidder* bidder : waiting) explain_none(*bidder, now);
}

// Sets the reason for which the job gets no summer in this round: kPausing only if there is no other reason.
void Autoscaler::explain_none(const Bidder& bidder, absl::Duration now) const {
  Verdict& verdict = *bidder.verdict;
  const std::optional<Bid> alone = best_bid(bidder, {});
  verdict.share = alone.has_value() ? alone->share : 0;
  if (!alone.has_value()) {
    verdict.code = Code::kNoMachine;
    verdict.why = no_machine_sentence(*bidder.job, memory_.at(bidder.job->key), now);
  } else if (!is_worth_it(*alone)) {
    verdict.code = Code::kNotWorthIt;
    verdict.why =
        absl::StrCat(worth_sentence(bidder, *alone, settings_.measured), ", less than ", percent(settings_.min_gain));
  } else if (bidder.pausing) {
    verdict.code = Code::kPausing;
    verdict.why =
        absl::StrCat(worth_sentence(bidder, *alone, settings_.measured), "; the last summer was added less than ",
                     absl::FormatDuration(settings_.grow_pause), " ago");
  } else {
    verdict.code = Code::kOutbid;
    verdict.why = absl::StrCat("machine ", alone->machine->node, " goes to a job that gains more by it");
  }
}

std::string Autoscaler::no_machine_sentence(const Job& job, const Memory& memory, absl::Duration now) const {
  if (job.candidates.empty()) {
    return "no machine has enough to spare for one more summer; `gleaner top` shows the reason for each";
  }
  for (const Candidate& machine : job.candidates) {
    if (!is_paused(memory, machine, now) || !is_measured_free(job, machine)) continue;
    return absl::StrCat("machine ", machine.node, " gets no summer for a while: its last summer had to leave");
  }
  return absl::StrCat("machine ", job.candidates.front().node,
                      " has enough to spare now, but Prometheus has not seen that for the whole window");
}

// Removes a summer of another job if this job gets no free machine and would gain enough by that summer's machine. The
// gain is enough against a job of lower priority; at the same priority this job must gain `take_over` times the share
// that the other job loses.
void Autoscaler::contest(const Bidder& bidder, const std::vector<Job>& jobs, std::map<std::string, Verdict>& verdicts,
                         absl::Duration now) {
  if (bidder.verdict->add.has_value() || bidder.pausing) return;
  for (const Contested& contested : bidder.job->contested) {
    const auto holder =
        std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.key == contested.holder; });
    if (holder == jobs.end() || !is_usable(*bidder.job, memory_[bidder.job->key], contested.machine, now)) continue;
    Verdict& loser = verdicts[holder->key];
    const bool settled = loser.add.has_value() || !loser.remove.empty();
    if (settled || staying(*holder, loser) <= holder->min || holder->priority > bidder.job->priority) continue;
    const Bid bid{&bidder, &contested.machine,
                  bidder.worth->share(bidder.worth->gain_seconds(contested.machine.bits_per_second))};
    if (!is_worth_it(bid)) continue;
    const Worth losing(*holder, settings_, {});
    if (losing.unknown().has_value() && holder->priority == bidder.job->priority) continue;
    const double lost = losing.share(losing.loss_seconds(contested.index));
    if (holder->priority == bidder.job->priority &&
        bid.share < settings_.take_over * std::max(lost, settings_.min_loss)) {
      continue;
    }
    Memory& memory = memory_[holder->key];
    remove(memory, loser,
           {contested.index, Code::kGivesWay,
            absl::StrCat("job ", bidder.job->key, " saves ", percent(bid.share), " of its step with machine ",
                         contested.machine.node, ", this job loses ", percent(lost))});
    loser.wanted = staying(*holder, loser);
    memory.pauses[contested.machine.node] = {now + kLongestNodePause, kLongestNodePause};
    return;
  }
}

}  // namespace gleaner::autoscale
