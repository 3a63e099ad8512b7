// The plan of a job: who takes part, which tensors there are, and which summer owns each partition.
//
// Plain data, shared by planner, coordinator, worker session and summer engine. Members are numbered in one sequence:
// worker i is member i (0 <= i < n) and so is the summer colocated with it; CPU summer j is member n + j. An owner is
// the member whose summer sums a partition. Once built a Plan never changes; who needs it holds a shared_ptr<const
// Plan>. What may follow what: successor.h.
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
inline constexpr size_t kMaxEndpoints = 8;  // of a member
inline constexpr size_t kMaxEndpointBytes = 512;
inline constexpr uint32_t kUnbounded = UINT32_MAX;

// A named gradient. Its index in Plan::tensors is its id on the wire.
struct Tensor {
  std::string name;  // 1 .. kMaxTensorNameBytes, different from every other
  uint64_t elements = 0;
  DataType type = DataType::kFloat32;
  // Lower goes first: what the next forward pass needs first. Ties go by generation order.
  int32_t priority = 0;
  uint32_t since = 0;  // epoch of the first plan with it
  // Each push adds to a running sum and is answered with it, without waiting for other workers: ReduceOp::kAccumulate,
  // and never another. For fp32 and int32. An answer waits for workers that are more than `staleness` steps behind.
  bool accumulates = false;
  uint32_t staleness = kUnbounded;

  uint64_t bytes() const { return elements * size_of(type); }
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// What the first push_pull of a tensor asks for on some rank. It is told along with declarations, before anything is
// pushed: an owner can only sum contributions of one operation.
struct Operation {
  std::string tensor;  // its name
  ReduceOp op = ReduceOp::kSum;
  friend bool operator==(const Operation&, const Operation&) = default;
};

// A slice of a tensor: the unit of transfer, of ownership and of priority.
struct Partition {
  uint32_t tensor = 0;
  uint32_t owner = 0;   // member index
  uint64_t offset = 0;  // bytes from the start of the tensor, element aligned
  uint32_t bytes = 0;   // at least 1; an answer has at most kMaxPartitionBytes
  // The epoch from which this owner has it, the tensor's or a later one, at most the plan's. Frames about it of earlier
  // epochs are of another owner's time, and mean nothing any more: they are fenced off.
  uint32_t since = 0;
  friend bool operator==(const Partition&, const Partition&) = default;
};

// A summer that is gone leaves its place empty, so that nobody else's number changes; another may come to take it.
struct Member {
  double bits_per_second = 0;  // each way; within the limits of model.h. 0: this summer's place is empty
  std::string address;         // HOST:PORT of its summer; empty in a plan that is only computed
  uint32_t since = 0;          // epoch in which it came: whoever has this place later is another
  // Where others reach it, by what transport, in order of its preference (common/transport/endpoint.h); none: by TCP,
  // at `address`.
  std::vector<std::string> endpoints;
  bool assumed = false;  // nobody said how fast its link is: bits_per_second stands in for that
  bool is_here() const { return bits_per_second > 0; }
  friend bool operator==(const Member&, const Member&) = default;
};
// Whether it is one and the same member, whatever its bandwidth now.
inline bool is_same(const Member& a, const Member& b) { return a.since == b.since && a.address == b.address; }

struct Plan {
  uint32_t epoch = 0;                     // version; 0: not agreed by anybody
  uint32_t workers = 0;                   // n
  uint32_t local_ranks = 1;               // g; n * g ranks take part in every sum
  std::vector<Member> members;            // workers, then CPU summers and their empty places
  std::vector<Tensor> tensors;            // by id, in generation order
  std::vector<Partition> partitions;      // by tensor, then by offset; every byte exactly once
  std::vector<uint32_t> first_partition;  // per tensor, plus one past the end: size tensors.size() + 1

  uint32_t summers() const;  // k: those that are here
  // Somebody said how fast each member's link is; else there is no bound.
  bool bandwidths_known() const;
  uint32_t ranks() const { return workers * local_ranks; }
  // Of what an owner answers with: the partition, and where it accumulates a count (8) per worker.
  uint32_t answer_bytes(const Partition& partition) const {
    return partition.bytes + counts_bytes(tensors[partition.tensor]);
  }
  uint32_t counts_bytes(const Tensor& tensor) const { return tensor.accumulates ? workers * 8 : 0; }
  // Index in `partitions`.
  uint32_t index_of(uint32_t tensor, uint32_t partition) const { return first_partition[tensor] + partition; }
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

// Their number and form; what they mean is for those who connect.
absl::Status validate_endpoints(const std::vector<std::string>& endpoints);

}  // namespace gleaner::plan
