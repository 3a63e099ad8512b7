// CandidateCache keeps the candidates of a job (candidates.h), since it takes up to half a second to model them for
// hundreds of workers. Pure. Not thread safe.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/model.h"
#include "common/plan/plan.h"
#include "common/strategy/candidates.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::strategy {

// The candidates in one network.
struct Choices {
  std::vector<Candidate> candidates;
  plan::Fleet fleet;  // the bandwidths of the members; the sizes of partitions follow from them
};

class CandidateCache {
 public:
  // Returns the candidates in network_of() the plan, among them the schedules that the plan has. Models them if the
  // members that own partitions or their bandwidths have changed since the last call, or the round trip by more than a
  // quarter. `known`: the network of the job, the same in each call; null: one switch. Errors: those of candidates().
  absl::StatusOr<std::shared_ptr<const Choices>> of(const plan::Plan& plan, double round_trip_seconds,
                                                    const JobNetwork* known = nullptr);
  // Returns what the last call of of() returned; null: none was called.
  const std::shared_ptr<const Choices>& latest() const { return choices_; }

 private:
  // The network for which choices_ were made.
  struct Key {
    uint32_t workers = 0;
    uint32_t local_ranks = 1;
    std::vector<double> bits_per_second;  // by channel
    std::vector<double> latency_seconds;
  };
  bool fits(const Key& key) const;

  Key key_;
  std::shared_ptr<const Choices> choices_;
};

}  // namespace gleaner::strategy
