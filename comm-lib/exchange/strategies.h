// Strategies says which strategy sums each push_pull of a partition, while plans change the strategies of tensors
// (plan::Tensor::schedule_from). Pure; belongs to one thread. find() and on_begun() allocate no memory.
//
// Terms. The *number* of a push_pull is the count of earlier push_pulls of the same partition, by any strategy. A
// *change* is a plan's statement that push_pulls from a number on are summed by another strategy.
//
// A plan that is only prepared may never come into force, and other workers may or may not follow it. So from prepare()
// on, push_pulls at or above the change's number are *held*: they may begin after apply(), by the new strategy, or
// after withdraw() or the prepare() of another plan, by the old one. All workers thus sum each push_pull by one
// strategy. Push_pulls below the number go by the old strategy, also after apply():
//
//   number      97      98      99      100     101
//   before      ring    ring    ring    ring    ring     the plan in force says: ring
//   prepare()   ring    ring    ring    held    held     the next plan says: owners from 100 on
//   apply()     ring    ring    ring    owners  owners
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/plan/plan.h"

namespace gleaner::exchange {

class Strategies {
 public:
  using Schedule = std::optional<uint32_t>;  // as PieceRequest::schedule

  // Follows a valid plan that is a successor of the plan in force (plan/successor.h), and forgets the plan that was
  // prepared before. FailedPrecondition: a tensor has begun push_pulls that another worker would sum by the plan's
  // strategy; no plan is prepared then.
  absl::Status prepare(const plan::Plan& plan);
  // Forgets the prepared plan, if it is that of `epoch`.
  void withdraw(uint32_t epoch);
  void forget_prepared();
  // Brings a plan into force, usually the prepared one.
  void apply(const plan::Plan& plan);

  // Returns the schedule that sums the next push_pull of a partition of the plan in force; nothing while the push_pull
  // is held.
  std::optional<Schedule> find(uint32_t tensor, uint32_t partition) const;
  // Records that the next push_pull of `count` partitions has begun, or of all from `first` on if they are fewer.
  void on_begun(uint32_t tensor, uint32_t first, uint32_t count);

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  struct Change {
    uint64_t from = 0;
    Schedule schedule;
  };
  struct Tensor {
    std::vector<Change> changes;  // by `from`; the first one is for all push_pulls that may still begin before the next
    uint64_t held_from = kNever;  // push_pulls from this number on are held
    bool keeps_strategy(const plan::Tensor& planned) const { return planned.schedule_from <= changes.back().from; }
  };
  std::span<const uint64_t> begun_of(uint32_t tensor) const;  // by partition of the tensor
  uint64_t most_begun(uint32_t tensor) const;                 // of any partition
  uint64_t least_begun(uint32_t tensor) const;                // of any partition

  uint32_t prepared_epoch_ = 0;  // 0: none
  std::vector<Tensor> tensors_;
  std::vector<uint32_t> first_partition_;  // as in the plan in force
  std::vector<uint64_t> begun_;            // number of push_pulls begun, by partition
};

}  // namespace gleaner::exchange
