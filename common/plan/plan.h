// The plan of a job: who takes part, which tensors there are, and which summer owns each partition.
//
// Plain data, shared by planner, coordinator, worker session and summer engine. Members are numbered in one sequence:
// worker i is member i (0 <= i < n) and so is the summer colocated with it; CPU summer j is member n + j. An owner is
// the member whose summer sums a partition. Once built a Plan never changes; who needs it holds a shared_ptr<const
// Plan>.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/bytes.h"

namespace gleaner::plan {

inline constexpr uint64_t kMaxPartitionBytes = uint64_t{4} << 20;  // BytePS §4.1
inline constexpr uint32_t kMaxMembers = 1u << 16;
inline constexpr uint32_t kMaxRanks = 1u << 20;                 // n * g
inline constexpr uint32_t kMaxPartitions = 1u << 24;            // per plan: 64 TiB at most
inline constexpr uint64_t kMaxStreamBytes = uint64_t{1} << 60;  // all tensors together
inline constexpr size_t kMaxTensorNameBytes = 4096;

// A named gradient. Its index in Plan::tensors is its id on the wire.
struct Tensor {
  std::string name;  // 1 .. kMaxTensorNameBytes, different from every other
  uint64_t elements = 0;
  DataType type = DataType::kFloat32;
  // Lower goes first: what the next forward pass needs first. Ties go by generation order.
  int32_t priority = 0;

  uint64_t bytes() const { return elements * size_of(type); }
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// A slice of a tensor: the unit of transfer, of ownership and of priority.
struct Partition {
  uint32_t tensor = 0;
  uint32_t owner = 0;   // member index
  uint64_t offset = 0;  // bytes from the start of the tensor, element aligned
  uint32_t bytes = 0;   // 1 .. kMaxPartitionBytes
  friend bool operator==(const Partition&, const Partition&) = default;
};

struct Member {
  double bits_per_second = 0;  // each way; within the limits of model.h
  std::string address;         // HOST:PORT of its summer; empty in a plan that is only computed
  friend bool operator==(const Member&, const Member&) = default;
};

struct Plan {
  uint32_t epoch = 0;  // version; 0: not agreed by anybody
  // Frames of epochs in [fence, epoch] are accepted. A plan that only adds tensors keeps the fence of the one before; a
  // plan that moves partitions raises it to its own epoch. fence <= epoch.
  uint32_t fence = 0;
  uint32_t workers = 0;                   // n
  uint32_t local_ranks = 1;               // g; n * g ranks take part in every sum
  std::vector<Member> members;            // workers, then CPU summers: n + k
  std::vector<Tensor> tensors;            // by id, in generation order
  std::vector<Partition> partitions;      // by tensor, then by offset; every byte exactly once
  std::vector<uint32_t> first_partition;  // per tensor, plus one past the end: size tensors.size() + 1

  uint32_t summers() const { return static_cast<uint32_t>(members.size()) - workers; }
  uint32_t ranks() const { return workers * local_ranks; }
  std::span<const Partition> partitions_of(uint32_t tensor) const {
    return std::span(partitions)
        .subspan(first_partition[tensor], first_partition[tensor + 1] - first_partition[tensor]);
  }
  // "worker/0" or "summer/3".
  std::string member_name(uint32_t member) const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

// Checks every rule that the comments above state; what comes from outside is used only after this.
absl::Status validate(const Plan& plan);

// The part of it that concerns tensors alone: names, types, sizes.
absl::Status validate(std::span<const Tensor> tensors);

}  // namespace gleaner::plan
