// Autoscaler decides how many summers each job should have, and on which machines (docs/autoscaler.md).
//
// The caller passes the state of all jobs to each round. A verdict holds until the next round. Between rounds the
// Autoscaler keeps only pauses, removals that have not taken effect yet, and the time since which each summer has saved
// too little. It does no I/O; one thread uses it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/bids.h"
#include "operator/autoscale/worth.h"

namespace gleaner::autoscale {

class Autoscaler {
 public:
  explicit Autoscaler(const Settings& settings) : settings_(settings) {}

  // Returns a verdict for each job, by key. `now` must not decrease. Forgets jobs that are not in `jobs`.
  std::map<std::string, Verdict> round(const std::vector<Job>& jobs, absl::Duration now);

 private:
  // A pause in which the job gets no summer on a node.
  struct NodePause {
    absl::Duration until;
    absl::Duration length;
  };
  struct Memory {
    std::map<uint32_t, Removal> removals;     // removals not carried out yet, by summer
    std::map<uint32_t, std::string> running;  // nodes of running summers that were not told to leave, by summer
    // True until the job has its first summers. Between these there is no pause: each is added as soon as the one
    // before it has a machine.
    bool beginning = false;
    absl::Duration added = -absl::InfiniteDuration();  // when the youngest summer was added
    std::string added_node;
    absl::flat_hash_map<std::string, NodePause> pauses;  // by node
    // The time since which each summer has saved less than Settings::min_loss, by summer.
    absl::flat_hash_map<uint32_t, absl::Duration> idle_since;
    absl::Duration patience;  // a summer is removed after it has been idle for this long
    absl::Duration gave_up_idle = -absl::InfiniteDuration();  // when an idle summer was last removed
  };

  Memory initial_memory(const Job& job, absl::Duration now) const;
  void shrink(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const;
  void notice_gone(const Job& job, Memory& memory, absl::Duration now) const;
  void drop_idle(const Job& job, Memory& memory, absl::Duration now, Verdict& verdict) const;
  void repeat_removals(const Job& job, Memory& memory, Verdict& verdict) const;
  static void remove(Memory& memory, Verdict& verdict, Removal removal);
  void pause_node(Memory& memory, const std::string& node, absl::Duration now) const;
  bool may_grow(const Job& job, const Memory& memory, const Worth& worth, absl::Duration now, Bidder& bidder) const;
  static bool is_paused(const Memory& memory, const Candidate& machine, absl::Duration now);
  bool is_measured_free(const Job& job, const Candidate& machine) const;
  bool is_usable(const Job& job, const Memory& memory, const Candidate& machine, absl::Duration now) const;
  bool is_pausing(const Job& job, const Memory& memory, absl::Duration now) const;
  std::string no_machine_sentence(const Job& job, const Memory& memory, absl::Duration now) const;
  void explain_none(const Bidder& bidder, absl::Duration now) const;
  // Assigns each machine to the best bid, until no bid is left.
  void assign_machines(std::vector<Bidder>& bidders, absl::Duration now);
  void accept(const Bid& bid, absl::Duration now);
  bool is_worth_it(const Bid& bid) const;
  void contest(const Bidder& bidder, const std::vector<Job>& jobs, std::map<std::string, Verdict>& verdicts,
               absl::Duration now);

  const Settings settings_;
  std::map<std::string, Memory> memory_;  // by job
};

}  // namespace gleaner::autoscale
