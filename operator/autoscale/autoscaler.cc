#include "operator/autoscale/autoscaler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"

namespace gleaner::autoscale {
namespace {

constexpr absl::Duration kLongestRest = absl::Minutes(10);
constexpr absl::Duration kLongestPatience = absl::Hours(1);

std::string percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::vector<uint32_t> going(const Verdict& verdict) {
  std::vector<uint32_t> indices;
  for (const Removal& removal : verdict.remove) indices.push_back(removal.index);
  return indices;
}

uint32_t staying(const Job& job, const Verdict& verdict) {
  const std::vector<uint32_t> indices = going(verdict);
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

std::string worth_sentence(const Bidder& bidder, const Offer& offer, bool measured) {
  return absl::StrCat(
      "a summer with ", format_bits_per_second(offer.machine->bits_per_second), " on ", offer.machine->node, " buys ",
      percent(offer.share), " of the step of ", format_seconds(bidder.worth->step_seconds()),
      measured ? absl::StrCat(", ", format_seconds(bidder.worth->exposed_seconds()), " of which wait for sums")
               : " (by the model alone)");
}

}  // namespace

std::map<std::string, Verdict> Autoscaler::round(const std::vector<Job>& jobs, absl::Duration now) {
  std::map<std::string, Verdict> verdicts;
  std::map<std::string, Memory> known;
  for (const Job& job : jobs) {
    const auto found = memory_.find(job.key);
    Memory& memory = known[job.key];
    memory = found != memory_.end() ? std::move(found->second) : meet(job, now);
    notice_gone(job, memory, now);
    recall(job, memory, verdicts[job.key]);
    shrink(job, memory, now, verdicts[job.key]);
    drop_idle(job, memory, now, verdicts[job.key]);
  }
  memory_ = std::move(known);

  std::vector<Worth> worths;
  worths.reserve(jobs.size());  // bidders point into it
  std::vector<Bidder> bidders;
  for (const Job& job : jobs) {
    Verdict& verdict = verdicts[job.key];
    worths.emplace_back(job, settings_, going(verdict));
    Bidder bidder{&job, &worths.back(), &verdict, {}, staying(job, verdict)};
    verdict.wanted = bidder.summers;
    if (may_grow(job, memory_[job.key], worths.back(), now, bidder)) bidders.push_back(std::move(bidder));
  }
  deal(bidders, now);
  for (const Bidder& bidder : bidders) contest(bidder, jobs, verdicts, now);
  for (const Job& job : jobs) {
    const Verdict& verdict = verdicts[job.key];
    const bool goes_on = verdict.add.has_value() || verdict.code == Code::kPausing;
    if (!job.summers.empty() && !goes_on) memory_[job.key].beginning = false;
  }
  return verdicts;
}

// A job that this scaler sees for the first time. Its youngest summer tells when the last addition was: also one that
// the job began with, or that a predecessor of this scaler added.
Autoscaler::Memory Autoscaler::meet(const Job& job, absl::Duration now) const {
  Memory memory;
  memory.patience = settings_.idle;
  memory.beginning = job.summers.empty();
  for (const Summer& summer : job.summers) memory.added = std::max(memory.added, now - summer.age);
  return memory;
}

// --- fewer

void Autoscaler::rest(Memory& memory, const std::string& node, absl::Duration now) const {
  if (node.empty()) return;
  Rest& rest = memory.resting[node];
  const bool again = rest.pause > absl::ZeroDuration() && now - rest.until < kLongestRest;
  rest.pause = again ? std::min(2 * rest.pause, kLongestRest) : settings_.return_pause;
  rest.until = now + rest.pause;
}

// A summer that is gone without having been told left because its machine was needed, faster than anybody here sees, or
// was lost: either way that machine is not asked again at once.
void Autoscaler::notice_gone(const Job& job, Memory& memory, absl::Duration now) const {
  std::map<uint32_t, std::string> before = std::move(memory.running);
  memory.running.clear();
  for (const Summer& summer : job.summers) {
    before.erase(summer.index);
    if (summer.running && !summer.leaving) memory.running[summer.index] = summer.node;
  }
  for (const auto& [index, node] : before) {
    if (!memory.going.contains(index)) rest(memory, node, now);
  }
}

// What was decided is not thought over again: it stands until the summer is gone.
void Autoscaler::recall(const Job& job, Memory& memory, Verdict& verdict) const {
  std::map<uint32_t, Removal> before = std::move(memory.going);
  memory.going.clear();
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
  memory.going[removal.index] = removal;
  verdict.remove.push_back(std::move(removal));
}

// What does not depend on what a summer buys: it goes at once.
void Autoscaler::shrink(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const {
  for (const Summer& summer : job.summers) {
    if (summer.leaving || memory.going.contains(summer.index)) continue;
    if (summer.room.has_value() && !summer.room->fits) {
      remove(memory, verdict,
             {summer.index, Code::kOwnersNeedIt,
              absl::StrCat("machine ", summer.node, " is needed by its owners: ", summer.room->why_not)});
      rest(memory, summer.node, now);
    } else if (!summer.running && summer.age > settings_.start_patience) {
      remove(memory, verdict,
             {summer.index, Code::kDidNotStart,
              absl::StrCat("it does not run after ", absl::FormatDuration(settings_.start_patience))});
      rest(memory, summer.node.empty() ? memory.added_node : summer.node, now);
    }
  }
  for (uint32_t left = staying(job, verdict); left > job.max; --left) {
    const Worth worth(job, settings_, going(verdict));
    const Summer* least = nullptr;
    for (const Summer& summer : job.summers) {
      const std::vector<uint32_t> gone = going(verdict);
      if (summer.leaving || std::find(gone.begin(), gone.end(), summer.index) != gone.end()) continue;
      if (least == nullptr || worth.loss_seconds(summer.index) <= worth.loss_seconds(least->index)) least = &summer;
    }
    remove(memory, verdict,
           {least->index, Code::kAboveMaximum, absl::StrCat("the job allows ", job.max, " summers at most")});
  }
}

// One summer that has bought too little for long enough.
void Autoscaler::drop_idle(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const {
  const Worth worth(job, settings_, going(verdict));
  if (worth.unknown().has_value() || staying(job, verdict) <= job.min) {
    memory.idle_since.clear();
    return;
  }
  const Summer* least = nullptr;
  double least_seconds = 0;
  absl::flat_hash_map<uint32_t, absl::Duration> idle;
  for (const Summer& summer : job.summers) {
    const double seconds = worth.loss_seconds(summer.index);
    if (summer.leaving || !summer.running || worth.share(seconds) >= settings_.keep) continue;
    const auto since = memory.idle_since.find(summer.index);
    idle[summer.index] = since == memory.idle_since.end() ? now : since->second;
    if (now - idle[summer.index] < memory.patience) continue;
    // Of equals the youngest.
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
                       " has bought less than ", percent(settings_.keep), " of the step")});
  memory.gave_up_idle = now;
  memory.idle_since.clear();  // the others may buy more without it
}

// --- more

bool Autoscaler::is_resting(const Memory& memory, const Candidate& machine, absl::Duration now) {
  const auto resting = memory.resting.find(machine.node);
  return resting != memory.resting.end() && now < resting->second.until;
}

bool Autoscaler::is_measured_free(const Job& job, const Candidate& machine) const {
  if (!settings_.measured) return true;
  const auto enough = [this](const std::optional<Reading>& reading, double least) {
    return reading.has_value() && reading->age <= settings_.fresh && reading->value >= least;
  };
  // Half of what is there now must have been there all the while.
  return enough(machine.spare_cpus, job.summer_cpus) &&
         enough(machine.spare_bits_per_second, machine.bits_per_second / 2);
}

bool Autoscaler::is_usable(const Job& job, const Memory& memory, const Candidate& machine, absl::Duration now) const {
  return !is_resting(memory, machine, now) && is_measured_free(job, machine);
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

bool Autoscaler::is_worth_it(const Offer& offer) const {
  return offer.bidder->below_minimum() || offer.share >= settings_.worth;
}

void Autoscaler::accept(const Offer& offer, absl::Duration now) {
  const Bidder& bidder = *offer.bidder;
  Verdict& verdict = *bidder.verdict;
  Memory& memory = memory_[bidder.job->key];
  verdict.add = *offer.machine;
  verdict.wanted = bidder.summers + 1;
  verdict.share = offer.share;
  verdict.code = bidder.below_minimum() ? Code::kBelowMinimum : Code::kWorthIt;
  verdict.why = worth_sentence(bidder, offer, settings_.measured);
  if (bidder.below_minimum()) {
    verdict.why = absl::StrCat("the job asks for at least ", bidder.job->min, " summers; ", verdict.why);
  }
  // It was not as idle as it looked: next time more patience.
  const bool regretted = now - memory.gave_up_idle < 2 * memory.patience;
  memory.patience = regretted ? std::min(2 * memory.patience, kLongestPatience) : settings_.idle;
  memory.added = now;
  memory.added_node = offer.machine->node;
}

void Autoscaler::deal(std::vector<Bidder>& bidders, absl::Duration now) {
  absl::flat_hash_set<std::string> taken;
  std::vector<const Bidder*> waiting;
  waiting.reserve(bidders.size());
  for (const Bidder& bidder : bidders) waiting.push_back(&bidder);
  while (true) {
    std::optional<Offer> best;
    for (const Bidder* bidder : waiting) {
      if (bidder->pausing) continue;
      const std::optional<Offer> offer = best_offer(*bidder, taken);
      if (!offer.has_value() || !is_worth_it(*offer)) continue;
      if (!best.has_value() || goes_before(*offer, *best)) best = offer;
    }
    if (!best.has_value()) break;
    accept(*best, now);
    taken.insert(best->machine->node);
    std::erase(waiting, best->bidder);
  }
  for (const Bidder* bidder : waiting) explain_none(*bidder, now);
}

// Why the job gets no summer in this round. The pause is named last: only where nothing but the pause is in the way.
void Autoscaler::explain_none(const Bidder& bidder, absl::Duration now) const {
  Verdict& verdict = *bidder.verdict;
  const std::optional<Offer> alone = best_offer(bidder, {});
  verdict.share = alone.has_value() ? alone->share : 0;
  if (!alone.has_value()) {
    verdict.code = Code::kNoMachine;
    verdict.why = no_machine_sentence(*bidder.job, memory_.at(bidder.job->key), now);
  } else if (!is_worth_it(*alone)) {
    verdict.code = Code::kNotWorthIt;
    verdict.why =
        absl::StrCat(worth_sentence(bidder, *alone, settings_.measured), ", less than ", percent(settings_.worth));
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
    return "no machine has enough to spare for one more summer; `gleaner top` says what each lacks";
  }
  for (const Candidate& machine : job.candidates) {
    if (!is_resting(memory, machine, now) || !is_measured_free(job, machine)) continue;
    return absl::StrCat("machine ", machine.node, " is left alone for a while: the last summer there had to leave");
  }
  return absl::StrCat("machine ", job.candidates.front().node,
                      " has enough to spare now, but Prometheus has not seen that it had so for the whole window");
}

// A summer of another job gives way where this one has no machine: always to a higher priority; among equals only for
// much more than its job loses.
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
    const Offer offer{&bidder, &contested.machine,
                      bidder.worth->share(bidder.worth->gain_seconds(contested.machine.bits_per_second))};
    if (!is_worth_it(offer)) continue;
    const Worth losing(*holder, settings_, {});
    if (losing.unknown().has_value() && holder->priority == bidder.job->priority) continue;
    const double lost = losing.share(losing.loss_seconds(contested.index));
    if (holder->priority == bidder.job->priority &&
        offer.share < settings_.take_over * std::max(lost, settings_.keep)) {
      continue;
    }
    Memory& memory = memory_[holder->key];
    remove(memory, loser,
           {contested.index, Code::kGivesWay,
            absl::StrCat("job ", bidder.job->key, " gains ", percent(offer.share), " of its step by machine ",
                         contested.machine.node, ", this one loses ", percent(lost))});
    loser.wanted = staying(*holder, loser);
    memory.resting[contested.machine.node] = {now + kLongestRest, kLongestRest};
    return;
  }
}

}  // namespace gleaner::autoscale
