// ExpectedSums: the sums that the oracles compute for one job, cached. The oracle of a tensor without a schedule is
// oracle.h, and that of a tensor with one is collective::execute_all_reduce() (common/collective/oracle.h). In a job
// whose bits are of class RankOrder (plan::Bits) it is oracle.h for all tensors.
//
// Plans change the strategies of tensors (plan::Tensor::schedule_from). The strategy of a step is that of the last
// change, in the plans that workers follow, that counts from this step or an earlier one on. All workers have to sum a
// step in the same way, also if the worker that sums it first does not know of a later plan yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "tests/protocol_sim/scenario.h"

namespace gleaner::sim {

class ExpectedSums {
 public:
  explicit ExpectedSums(const Scenario* scenario) : scenario_(scenario) {}

  // Records that a worker follows this plan.
  void follow(const plan::Plan& plan);

  // Returns the sum of a tensor's step. `plan`: one that has the tensor, and that was passed to follow(). `planned` and
  // `tensor` are the tensor's indices in the plan and in the program. FailedPrecondition: a change says now that this
  // step is summed in another way than an earlier call of of() found.
  absl::StatusOr<const std::vector<std::byte>*> of(const plan::Plan& plan, uint32_t planned, uint32_t tensor,
                                                   uint64_t step);

 private:
  using Schedule = std::optional<collective::Spec>;
  struct Change {
    uint64_t from = 0;
    Schedule schedule;
  };
  struct Sum {
    Schedule schedule;
    std::vector<std::byte> bytes;
  };

  const Schedule& schedule_of(uint32_t planned, uint64_t step) const;
  std::vector<std::byte> sum_by_schedule(const plan::Plan& plan, uint32_t planned, const collective::Spec& spec,
                                         const std::vector<std::vector<std::byte>>& contributions,
                                         uint32_t divisor) const;

  const Scenario* const scenario_;
  uint32_t epoch_ = 0;                                 // of the latest plan that a worker follows
  std::vector<std::vector<Change>> changes_;           // by tensor of the plan; those of later plans come later
  std::map<std::pair<uint32_t, uint64_t>, Sum> sums_;  // by tensor and step
};

}  // namespace gleaner::sim
