// ExpectedSums: the sums that the oracle computes for one job, cached.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tests/protocol_sim/oracle.h"
#include "tests/protocol_sim/scenario.h"

namespace gleaner::sim {

class ExpectedSums {
 public:
  explicit ExpectedSums(const Scenario* scenario) : scenario_(scenario) {}

  const std::vector<std::byte>& of(uint32_t tensor, uint64_t step) {
    auto [entry, is_new] = sums_.try_emplace({tensor, step});
    if (!is_new) return entry->second;
    const coordinator::Options& job = scenario_->job;
    const plan::Tensor& what = scenario_->tensors[tensor];
    std::vector<std::vector<std::byte>> contributions;
    for (uint32_t worker = 0; worker < job.workers; ++worker) {
      contributions.push_back(contribution(scenario_->seed, what, tensor, step, worker));
    }
    const bool average = scenario_->op_of(tensor, step) == ReduceOp::kAverage;
    entry->second = reduce(what.type, contributions, average ? job.workers * job.local_ranks : 1);
    return entry->second;
  }

 private:
  const Scenario* const scenario_;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<std::byte>> sums_;
};

}  // namespace gleaner::sim
