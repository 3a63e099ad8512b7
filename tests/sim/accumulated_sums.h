// What answers to tensors that accumulate must be: sums, to the bit, of as many contributions of each worker as they
// say.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"
#include "tests/sim/report.h"
#include "tests/sim/scenario.h"

namespace gleaner::sim {

class AccumulatedSums {
 public:
  AccumulatedSums(const Scenario* scenario, Report* report) : scenario_(scenario), report_(report) {}

  // An answer on its way into a worker's session; `tensor`: of the program.
  void hear(const plan::Plan& plan, uint32_t tensor, uint32_t worker, const wire::Header& header,
            const Buffer& payload);
  // A push_pull is done: each of its partitions is one of the answers to it.
  void check_output(const plan::Plan& plan, uint32_t planned, uint32_t tensor, uint32_t worker, uint64_t step,
                    MutableBytes output);
  // Everything was added, whoever died on the way.
  void check_end() const;

 private:
  struct Heard {
    uint64_t step = 0;
    std::vector<std::pair<uint64_t, std::vector<std::byte>>> answers;  // version and sum
  };

  const std::vector<uint32_t>& sum_of_first(uint32_t tensor, uint32_t worker, uint64_t count);

  const Scenario* const scenario_;
  Report* const report_;
  // By tensor and worker: the sums of its first 0, 1, 2, … contributions.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<std::vector<uint32_t>>> sums_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Heard> heard_;  // by worker, tensor, partition
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> highest_;        // version, by tensor and partition
};

}  // namespace gleaner::sim
