// Decides how many summers each job should have, and on which machines (docs/autoscaler.md).
//
// Pure: told everything about all jobs at once, a round at a time; it remembers pauses and for how long a summer has
// bought nothing. What it says of a round holds until the next one. One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/offers.h"
#include "operator/autoscale/worth.h"

namespace gleaner::autoscale {

class Autoscaler {
 public:
  explicit Autoscaler(const Settings& settings) : settings_(settings) {}

  // A verdict for each job, by key. `now` only ever grows; jobs that are not among `jobs` are forgotten.
  std::map<std::string, Verdict> round(const std::vector<Job>& jobs, absl::Duration now);

 private:
  // A machine that is left alone for a while.
  struct Rest {
    absl::Duration until;
    absl::Duration pause;
  };
  struct Memory {
    std::map<uint32_t, Removal> going;        // that were to be removed, and are still there
    std::map<uint32_t, std::string> running;  // nodes of those that nobody has told to go
    // The job has not had its first summers yet: each of those comes as soon as the one before has its machine.
    bool beginning = false;
    absl::Duration added = -absl::InfiniteDuration();  // when the youngest summer was
    std::string added_node;
    absl::flat_hash_map<std::string, Rest> resting;            // by node
    absl::flat_hash_map<uint32_t, absl::Duration> idle_since;  // by summer
    absl::Duration patience;                                   // with idle summers
    absl::Duration gave_up_idle = -absl::InfiniteDuration();   // when one last went for that
  };

  Memory meet(const Job& job, absl::Duration now) const;
  void shrink(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const;
  void notice_gone(const Job& job, Memory& memory, absl::Duration now) const;
  void drop_idle(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const;
  void recall(const Job& job, Memory& memory, Verdict& verdict) const;
  static void remove(Memory& memory, Verdict& verdict, Removal removal);
  void rest(Memory& memory, const std::string& node, absl::Duration now) const;
  bool may_grow(const Job& job, const Memory& memory, const Worth& worth, absl::Duration now, Bidder& bidder) const;
  static bool is_resting(const Memory& memory, const Candidate& machine, absl::Duration now);
  bool is_measured_free(const Job& job, const Candidate& machine) const;
  bool is_usable(const Job& job, const Memory& memory, const Candidate& machine, absl::Duration now) const;
  bool is_pausing(const Job& job, const Memory& memory, absl::Duration now) const;
  std::string no_machine_sentence(const Job& job, const Memory& memory, absl::Duration now) const;
  void explain_none(const Bidder& bidder, absl::Duration now) const;
  void deal(std::vector<Bidder>& bidders, absl::Duration now);
  void accept(const Offer& offer, absl::Duration now);
  bool is_worth_it(const Offer& offer) const;
  void contest(const Bidder& bidder, const std::vector<Job>& jobs, std::map<std::string, Verdict>& verdicts,
               absl::Duration now);

  const Settings settings_;
  std::map<std::string, Memory> memory_;  // by job
};

}  // namespace gleaner::autoscale
