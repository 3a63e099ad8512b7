// Auction gives the free machines of one round to the jobs that would take one more summer (bids.h). A job that gets no
// free machine may take one from a summer of another job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/bids.h"
#include "operator/autoscale/job_memory.h"
#include "operator/autoscale/worth.h"

namespace gleaner::autoscale {

class Auction {
 public:
  // All references must outlive this object. `memories` and `verdicts` have an entry for each job, by key.
  Auction(const Settings& settings, const std::vector<Job>& jobs, absl::Duration now,
          std::map<std::string, JobMemory>& memories, std::map<std::string, Verdict>& verdicts)
      : settings_(settings), jobs_(jobs), now_(now), memories_(memories), verdicts_(verdicts) {}

  // Adds the additions, and the removals in favour of other jobs, to memories and verdicts. A verdict that has no other
  // reason gets the reason for which the job gets no machine.
  void hold();

 private:
  // Returns whether the job takes part. If so, sets the machines that it may use, and whether it is pausing.
  bool may_grow(Bidder& bidder) const;
  bool is_measured_free(const Job& job, const Candidate& machine) const;
  bool is_usable(const Job& job, const Candidate& machine) const;
  bool is_pausing(const Job& job) const;
  bool is_worth_it(const Bid& bid) const;
  // Assigns each machine to the best bid, until no bid is left.
  void assign_machines(const std::vector<Bidder>& bidders);
  void accept(const Bid& bid);
  void explain_none(const Bidder& bidder) const;
  std::string no_machine_sentence(const Job& job) const;
  void contest(const Bidder& bidder);
  std::optional<double> accepted_loss(const Job& holder, uint32_t summer, const Bid& bid) const;

  const Settings& settings_;
  const std::vector<Job>& jobs_;
  const absl::Duration now_;
  std::map<std::string, JobMemory>& memories_;
  std::map<std::string, Verdict>& verdicts_;
};

}  // namespace gleaner::autoscale
