// AccumulatedSums: checks the answers to tensors that accumulate. An answer states how many contributions of each
// worker it contains, and its sum must be, bit by bit, the sum of these contributions.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"
#include "tests/protocol_sim/report.h"
#include "tests/protocol_sim/scenario.h"

namespace gleaner::sim {

class AccumulatedSums {
 public:
  AccumulatedSums(const Scenario* scenario, Report* report) : scenario_(scenario), report_(report) {}

  // Checks an answer before the worker's session receives it. `tensor` is an index in the program (Scenario::tensors).
  void hear(const plan::Plan& plan, uint32_t tensor, uint32_t worker, const wire::Header& header,
            const Buffer& payload);
  // Checks the output of a push_pull: each of its partitions must equal an answer to this push_pull. `planned` and
  // `tensor` are the tensor's indices in the plan and in the program.
  void check_output(const plan::Plan& plan, uint32_t planned, uint32_t tensor, uint32_t worker, uint64_t step,
                    MutableBytes output);
  // Checks that the last sums contain all contributions, whichever members were lost during the run.
  void check_end() const;

 private:
  // The answers to one worker for a partition, at its latest step.
  struct Heard {
    uint64_t step = 0;
    std::vector<std::pair<uint64_t, std::vector<std::byte>>> answers;  // version and sum
  };

  const std::vector<uint32_t>& sum_of_first(uint32_t tensor, uint32_t worker, uint64_t count);

  const Scenario* const scenario_;
  Report* const report_;
  // By tensor and worker: the sums of the worker's first 0, 1, 2, … contributions.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::vector<uint32_t>>> sums_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Heard> heard_;  // by worker, tensor, partition
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> highest_;        // by tensor, partition: the highest version seen
};

}  // namespace gleaner::sim
