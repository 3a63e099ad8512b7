// ExpectedSums: the sums that the oracles compute for one job, cached. The oracle of a tensor without a schedule is
// oracle.h, and that of a tensor with one is collective::execute() (common/collective/oracle.h).
//
// All workers have to sum a step of a tensor in the same way. So a plan may give a tensor another strategy between two
// of its steps, if each worker passes the plan by which it summed the step.
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

  // Returns the sum of a tensor's step by `plan`. `planned` and `tensor` are the tensor's indices in the plan and in
  // the program. FailedPrecondition: another plan, for which of() was called before, sums this step in another way.
  absl::StatusOr<const std::vector<std::byte>*> of(const plan::Plan& plan, uint32_t planned, uint32_t tensor,
                                                   uint64_t step);

 private:
  struct Sum {
    std::optional<plan::ScheduleParameters> schedule;
    std::vector<std::byte> bytes;
  };

  std::vector<std::byte> sum_by_schedule(const plan::Plan& plan, uint32_t planned,
                                         const std::vector<std::vector<std::byte>>& contributions,
                                         uint32_t divisor) const;

  const Scenario* const scenario_;
  std::map<std::pair<uint32_t, uint64_t>, Sum> sums_;  // by tensor and step
};

}  // namespace gleaner::sim
