// Declarations collects the tensors that ranks declare, until every rank of a tensor's group has declared it alike.
// Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class Declarations {
 public:
  explicit Declarations(const Roster* roster) : roster_(*roster) {}

  // Registers tensors that `rank` declares. InvalidArgument if two ranks differ, or if `rank` declares a tensor again
  // but not alike: the message names the tensor, the ranks, and both declarations.
  absl::Status declare(uint32_t rank, const std::vector<plan::Tensor>& tensors, absl::Duration now);

  // Registers the operations that the first push_pulls of these tensors ask for on `rank`. InvalidArgument if two ranks
  // differ: the message names the tensor, both ranks, and both operations. Skips tensors that no rank has declared.
  // Owners of the tensor's partitions compare the operations of later push_pulls.
  absl::Status operate(uint32_t rank, const std::vector<plan::Operation>& operations);

  // Registers the tensors of a plan that was agreed on under another coordinator, as declared by every rank.
  void adopt(const std::vector<plan::Tensor>& tensors);

  // Returns the tensors that have become agreed since the last call: every rank has declared them alike, or every rank
  // of their group. They have the priorities of the first such rank, rank 0 without a group, and come in the order in
  // which it declared them.
  std::vector<plan::Tensor> take_agreed();

  // Returns when the oldest pending tensor was first declared. A tensor is pending until it is agreed.
  std::optional<absl::Duration> oldest_pending() const;
  // Describes the oldest pending tensor: "tensor 'x' was declared by worker 0 but not by worker 1, worker 2".
  std::string describe_pending() const;
  // Returns the ranks that have not declared the oldest pending tensor.
  std::vector<uint32_t> missing() const;
  // Returns the oldest pending tensor, as the first rank declared it; null if none is pending.
  const plan::Tensor* pending() const;
  // Returns whether a rank has declared a tensor; false if no rank has.
  bool has_declared(uint32_t rank, const std::string& tensor) const;
  // Returns whether a rank contributes to a tensor. True also if no rank has declared the tensor.
  bool contributes(uint32_t rank, const std::string& tensor) const;

 private:
  struct Entry {
    plan::Tensor tensor;
    uint32_t first_rank = 0;
    absl::Duration first_time;
    uint64_t order = 0;          // position among the declarations of the first ranks
    uint32_t declared = 0;       // number of ranks that have declared the tensor
    std::vector<bool> by;        // by rank: whether it has declared the tensor; empty once the tensor is agreed
    std::optional<ReduceOp> op;  // operation of the first push_pull, if a rank has told it
    uint32_t op_rank = 0;        // the rank that has told `op`
  };
  absl::Status declare(uint32_t rank, const plan::Tensor& tensor, absl::Duration now);
  absl::Status differs(const Entry& entry, uint32_t rank, const plan::Tensor& tensor) const;
  std::string difference(const Entry& entry, uint32_t other) const;
  bool has(const plan::Tensor& tensor, uint32_t rank) const;
  uint32_t ranks_of(const plan::Tensor& tensor) const;
  const Entry* oldest() const;

  const Roster& roster_;
  absl::flat_hash_map<std::string, Entry> entries_;
  uint64_t next_order_ = 0;
  // By time of first declaration; a tensor that is agreed stays until it reaches the front.
  std::vector<std::string> pending_;
  size_t pending_begin_ = 0;
  std::vector<std::string> agreed_;
};

}  // namespace gleaner::coordinator
