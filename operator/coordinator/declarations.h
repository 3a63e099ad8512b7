// Tensors that ranks declare, until all of them have declared each alike. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "operator/coordinator/roster.h"

namespace gleaner::coordinator {

class Declarations {
 public:
  explicit Declarations(const Roster* roster) : roster_(*roster) {}

  // InvalidArgument names the tensor, both ranks, and what each declared, when they differ.
  absl::Status declare(uint32_t rank, const std::vector<plan::Tensor>& tensors, absl::Duration now);

  // What the first push_pull of each of these tensors asks for on `rank`. InvalidArgument names the tensor, both ranks
  // and what each asks for, when they differ. Later push_pulls are compared by the owners of the tensor's partitions.
  absl::Status operate(uint32_t rank, const std::vector<plan::Operation>& operations);

  // Of a plan that was agreed on under another coordinator: every rank has declared these.
  void adopt(const std::vector<plan::Tensor>& tensors);

  // Those that every rank has declared since the last call, with rank 0's priorities, in its order of declaration.
  std::vector<plan::Tensor> take_agreed();

  // When the oldest tensor that some rank has not declared was first declared.
  std::optional<absl::Duration> oldest_pending() const;
  // That tensor and the ranks that have not declared it: "tensor 'x', declared by worker 0 ..., is not declared by
  // ...".
  std::string describe_pending() const;
  // Ranks that have not declared the oldest pending tensor.
  std::vector<uint32_t> missing() const;

 private:
  struct Entry {
    plan::Tensor tensor;
    uint32_t first_rank = 0;
    absl::Duration first_time;
    uint64_t order = 0;          // of rank 0's declarations
    uint32_t declared = 0;       // ranks that did
    std::vector<bool> by;        // by rank; empty once all did
    std::optional<ReduceOp> op;  // of the first push_pull, where some rank has told
    uint32_t op_rank = 0;        // that rank
  };
  absl::Status declare(uint32_t rank, const plan::Tensor& tensor, absl::Duration now);
  absl::Status differs(const Entry& entry, uint32_t rank, const plan::Tensor& tensor) const;
  const Entry* oldest() const;

  const Roster& roster_;
  absl::flat_hash_map<std::string, Entry> entries_;
  uint64_t next_order_ = 0;
  std::vector<std::string> pending_;  // by time of first declaration; some are agreed by now
  size_t pending_begin_ = 0;
  std::vector<std::string> agreed_;
};

}  // namespace gleaner::coordinator
