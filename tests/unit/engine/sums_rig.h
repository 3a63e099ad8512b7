// SumsRig: the test fixture of Sums and of RunningSums by themselves. Two workers take part. The sums are those of
// member 2.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "common/base/buffer.h"
#include "common/kernels/kernels.h"
#include "summation-service/engine/frames.h"
#include "summation-service/engine/memory_budget.h"
#include "summation-service/engine/releases.h"
#include "tests/unit/engine/plans.h"

namespace gleaner::testing {

template <typename Sums>
class SumsRig : public ::testing::Test {
 protected:
  explicit SumsRig(uint64_t memory_bytes) : memory(memory_bytes) {}

  // Sends a contribution of 8 bytes.
  absl::Status push(uint32_t worker, uint64_t step) {
    actions.clear();
    return sums.push(worker, frame(wire::FrameType::kPush, worker, step), pool.take(8), actions);
  }
  absl::Status hand_on(uint32_t worker, uint64_t step, Buffer payload) {
    actions.clear();
    return sums.hand(worker, frame(wire::FrameType::kHand, worker, step), std::move(payload), actions);
  }
  void acknowledge(uint32_t worker, uint64_t step) {
    actions.clear();
    sums.acknowledge(worker, {.step = step}, actions);
  }
  static wire::Header frame(wire::FrameType type, uint32_t worker, uint64_t step) {
    return engine::make_header({.job = 7, .self = worker}, 1, type, {.step = step});
  }
  // Returns the workers to which the last call sends frames of this type.
  std::vector<uint32_t> receivers(wire::FrameType type) const {
    std::vector<uint32_t> workers;
    for (const engine::Send& send : actions.sends) {
      if (send.header.type == type) workers.push_back(send.worker);
    }
    return workers;
  }

  kernels::Kernels kernels = *kernels::Kernels::choose("");
  BufferPool pool;
  engine::MemoryBudget memory;
  engine::Releases releases;
  engine::Actions actions;
  Sums sums{{.job = 7, .self = 2}, &kernels, &pool, &memory, &releases};
};

}  // namespace gleaner::testing
