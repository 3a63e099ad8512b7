#include "operator/autoscale/auction.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/text_table.h"
#include "operator/autoscale/sentences.h"

namespace gleaner::autoscale {

void Auction::hold() {
  std::vector<Worth> worths;
  worths.reserve(jobs_.size());  // bidders hold pointers to its elements
  std::vector<Bidder> bidders;
  for (const Job& job : jobs_) {
    Verdict& verdict = verdicts_.at(job.key);
    worths.emplace_back(job, settings_, removed_summers(verdict));
    Bidder bidder{&job, &worths.back(), &verdict, {}, count_staying(job, verdict)};
    verdict.wanted = bidder.summers;
    if (may_grow(bidder)) bidders.push_back(std::move(bidder));
  }
  assign_machines(bidders);
  for (const Bidder& bidder : bidders) contest(bidder);
}

bool Auction::may_grow(Bidder& bidder) const {
  const Job& job = *bidder.job;
  Verdict& verdict = *bidder.verdict;
  if (!verdict.remove.empty()) return false;
  const auto say = [&verdict](Code code, std::string why) {
    verdict.code = code;
    verdict.why = std::move(why);
    return false;
  };
  if (bidder.summers >= job.max)
    return say(Code::kAtMaximum, absl::StrCat("the job allows ", counted(job.max, "summer")));
  const std::optional<Code> unknown = bidder.worth->unknown();
  if (unknown.has_value() && !bidder.below_minimum()) return say(*unknown, hold_sentence(*unknown, settings_.fresh));
  for (const Candidate& machine : job.candidates) {
    if (is_usable(job, machine)) bidder.machines.push_back(&machine);
  }
  bidder.pausing = is_pausing(job);
  return true;
}

bool Auction::is_measured_free(const Job& job, const Candidate& machine) const {
  if (!settings_.measured) return true;
  const auto enough = [this](const std::optional<Reading>& reading, double least) {
    return reading.has_value() && reading->age <= settings_.fresh && reading->value >= least;
  };
  // At least half of the bandwidth offered must have been spare throughout the window.
  return enough(machine.spare_cpus, job.summer_cpus) &&
         enough(machine.spare_bits_per_second, machine.bits_per_second / 2);
}

bool Auction::is_usable(const Job& job, const Candidate& machine) const {
  return !memories_.at(job.key).pauses.is_paused(machine.node, now_) && is_measured_free(job, machine);
}

bool Auction::is_pausing(const Job& job) const {
  const JobMemory& memory = memories_.at(job.key);
  if (now_ - memory.added >= settings_.grow_pause) return false;
  return !memory.beginning ||
         std::any_of(job.summers.begin(), job.summers.end(), [](const Summer& summer) { return summer.node.empty(); });
}

bool Auction::is_worth_it(const Bid& bid) const {
  return bid.bidder->below_minimum() || bid.share >= settings_.min_gain;
}

void Auction::assign_machines(const std::vector<Bidder>& bidders) {
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
    accept(*best);
    taken.insert(best->machine->node);
    std::erase(waiting, best->bidder);
  }
  for (const Bidder* bidder : waiting) explain_none(*bidder);
}

void Auction::accept(const Bid& bid) {
  const Bidder& bidder = *bid.bidder;
  Verdict& verdict = *bidder.verdict;
  verdict.add = *bid.machine;
  verdict.wanted = bidder.summers + 1;
  verdict.share = bid.share;
  verdict.code = bidder.below_minimum() ? Code::kBelowMinimum : Code::kWorthIt;
  verdict.why = worth_sentence(bid, settings_.measured);
  if (bidder.below_minimum()) {
    verdict.why = absl::StrCat("the job asks for at least ", counted(bidder.job->min, "summer"), "; ", verdict.why);
  }
  JobMemory& memory = memories_.at(bidder.job->key);
  memory.idle.on_addition(now_);
  memory.added = now_;
  memory.added_node = bid.machine->node;
}

// Sets the reason for which the job gets no summer in this round: kPausing only if there is no other reason.
void Auction::explain_none(const Bidder& bidder) const {
  Verdict& verdict = *bidder.verdict;
  const std::optional<Bid> alone = best_bid(bidder, {});
  verdict.share = alone.has_value() ? alone->share : 0;
  if (!alone.has_value()) {
    verdict.code = Code::kNoMachine;
    verdict.why = no_machine_sentence(*bidder.job);
  } else if (!is_worth_it(*alone)) {
    verdict.code = Code::kNotWorthIt;
    verdict.why = absl::StrCat(worth_sentence(*alone, settings_.measured), ", less than ", percent(settings_.min_gain));
  } else if (bidder.pausing) {
    verdict.code = Code::kPausing;
    verdict.why = absl::StrCat(worth_sentence(*alone, settings_.measured), "; the last summer was added less than ",
                               absl::FormatDuration(settings_.grow_pause), " ago");
  } else {
    verdict.code = Code::kOutbid;
    verdict.why = absl::StrCat("machine ", alone->machine->node, " goes to a job that gains more by it");
  }
}

std::string Auction::no_machine_sentence(const Job& job) const {
  if (job.candidates.empty()) {
    return "no machine has enough to spare for one more summer; `gleaner top` shows the reason for each";
  }
  const NodePauses& pauses = memories_.at(job.key).pauses;
  for (const Candidate& machine : job.candidates) {
    if (!pauses.is_paused(machine.node, now_) || !is_measured_free(job, machine)) continue;
    return absl::StrCat("machine ", machine.node, " gets no summer for a while: its last summer had to leave");
  }
  return absl::StrCat("machine ", job.candidates.front().node,
                      " has enough to spare now, but Prometheus has not seen that for the whole window");
}

// Returns the share of its step that `holder` loses with its summer; nullopt: the bid does not suffice to take it. The
// bid suffices against a job of lower priority; at the same priority the bidder must gain Settings::take_over times the
// share that the holder loses.
std::optional<double> Auction::accepted_loss(const Job& holder, uint32_t summer, const Bid& bid) const {
  const Verdict& verdict = verdicts_.at(holder.key);
  const Job& bidder = *bid.bidder->job;
  if (verdict.add.has_value() || !verdict.remove.empty()) return std::nullopt;
  if (count_staying(holder, verdict) <= holder.min || holder.priority > bidder.priority) return std::nullopt;
  if (!is_worth_it(bid)) return std::nullopt;
  const Worth losing(holder, settings_, {});
  const double lost = losing.share(losing.loss_seconds(summer));
  if (holder.priority < bidder.priority) return lost;
  const bool is_enough = bid.share >= settings_.take_over * std::max(lost, settings_.min_loss);
  return losing.unknown().has_value() || !is_enough ? std::nullopt : std::optional<double>(lost);
}

// Removes a summer of another job if this job gets no free machine and would gain enough by that summer's machine.
void Auction::contest(const Bidder& bidder) {
  if (bidder.verdict->add.has_value() || bidder.pausing) return;
  for (const Contested& contested : bidder.job->contested) {
    const auto holder =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& job) { return job.key == contested.holder; });
    if (holder == jobs_.end() || !is_usable(*bidder.job, contested.machine)) continue;
    const double gain = bidder.worth->gain_seconds(contested.machine);
    const Bid bid{&bidder, &contested.machine, bidder.worth->share(gain)};
    const std::optional<double> lost = accepted_loss(*holder, contested.index, bid);
    if (!lost.has_value()) continue;
    JobMemory& memory = memories_.at(holder->key);
    Verdict& verdict = verdicts_.at(holder->key);
    remove_summer({contested.index, Code::kGivesWay,
                   absl::StrCat("job ", bidder.job->key, " saves ", percent(bid.share), " of its step with machine ",
                                contested.machine.node, ", this job loses ", percent(*lost))},
                  memory, verdict);
    verdict.wanted = count_staying(*holder, verdict);
    memory.pauses.begin_longest(contested.machine.node, now_);
    return;
  }
}

}  // namespace gleaner::autoscale
