// Plan holds the members of a job, its tensors, and the owner of each partition.
//
// A Plan is plain data, shared by planner, coordinator, worker session and summer engine. Members are numbered in one
// sequence: worker i is member i (0 <= i < n), and so is the summer colocated with it; CPU summer j is member n + j.
// The *owner* of a partition is the member whose summer sums it. A Plan never changes once it is built; its users share
// it as a shared_ptr<const Plan>. successor.h says which plan may follow which.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/accumulator.h"
#include "common/base/bytes.h"
#include "common/collective/spec.h"
#include "common/plan/encoding.h"

namespace gleaner::plan {

// The class of the bits of a job's sums (docs/strategies.md#the-bits).
enum class Bits : uint8_t {
  kRankOrder,  // contributions are added in the order of the ranks, so no strategy changes a bit
  kSchedule,   // each strategy has its own order of additions, so the bits follow from the strategies
};

inline constexpr uint64_t kMaxPartitionBytes = uint64_t{4} << 20;  // BytePS §4.1
inline constexpr uint32_t kMaxMembers = 1u << 16;
inline constexpr uint32_t kMaxRanks = 1u << 20;                 // n * g
inline constexpr uint32_t kMaxPartitions = 1u << 24;            // per plan; they hold at most 64 TiB
inline constexpr uint64_t kMaxStreamBytes = uint64_t{1} << 60;  // of all tensors together
inline constexpr size_t kMaxTensorNameBytes = 4096;
inline constexpr size_t kMaxSchedules = 64;  // of one plan
inline constexpr size_t kMaxAlgorithmNameBytes = 64;
inline constexpr size_t kMaxEndpoints = 8;  // of one member
inline constexpr size_t kMaxEndpointBytes = 512;
// The staleness of a tensor whose answers never wait for other workers.
inline constexpr uint32_t kUnbounded = UINT32_MAX;

// The memory in which ranks hold a tensor that does not travel as it is, and how its contributions are made from there.
struct Memory {
  DataType type = DataType::kFloat32;
  uint64_t elements = 0;
  std::optional<DataType> contribution;  // none: the tensor's type
  // The rest is about contributions in blocks (docs/compression.md).
  uint64_t seed = 0;        // of random numbers
  bool feeds_back = false;  // whether what a contribution lacks is added to the next one
  float momentum = 0;       // from 0 to below 1: the factor by which earlier values fade; 0: none
  uint64_t bytes() const { return elements * size_of(type); }
  friend bool operator==(const Memory&, const Memory&) = default;
};

// A named gradient. Its index in Plan::tensors is its id on the wire.
struct Tensor {
  std::string name;  // 1 to kMaxTensorNameBytes bytes, unique in the plan
  uint64_t elements = 0;
  DataType type = DataType::kFloat32;
  // Partitions of tensors with a lower priority value are pushed first. The next forward pass should need their results
  // first. Ties go by generation order.
  int32_t priority = 0;
  uint32_t since = 0;  // epoch of the first plan that has this tensor
  // True: owners add each push to a running sum and answer with that sum, without waiting for other workers. The
  // tensor's op is then always ReduceOp::kAccumulate. Only fp32 and int32 tensors may accumulate. An answer waits for
  // workers that are more than `staleness` steps behind.
  bool accumulates = false;
  uint32_t staleness = kUnbounded;
  // Index in Plan::schedules of the schedule that sums this tensor. None: the owners of its partitions sum it. A tensor
  // that accumulates has none.
  std::optional<uint32_t> schedule;
  // The number of the tensor's first push_pull that is summed as `schedule` says; 0 in the first plan that has the
  // tensor. Earlier push_pulls are summed as earlier plans of the job say. So each push_pull has one strategy, which
  // all workers know before they begin it. A tensor that accumulates has 0.
  uint64_t schedule_from = 0;
  // The *group*: the workers whose contributions the sum has, in ascending order, at least one and fewer than n. Empty:
  // all workers. The sum of a group's tensor goes to these workers alone. Such a tensor has no schedule and does not
  // accumulate, and its partitions belong to members of the group and to CPU summers.
  std::vector<uint32_t> group;
  // Set for a *compressed* tensor: a stage of each worker (comm-lib/encoding) makes its contributions from this memory,
  // and converts its results back. Such a tensor is fp16, bf16 or of a block type, its memory fp32, and it does not
  // accumulate. Other tensors are in the memory of ranks as they travel.
  std::optional<Memory> memory;

  // Returns the size of the ranks' memory for the first `travelling` bytes of the tensor.
  uint64_t memory_bytes(uint64_t travelling) const {
    if (!memory.has_value()) return travelling;
    return std::min(travelling / size_of(type) * values_of(type) * size_of(memory->type), memory->bytes());
  }
  uint64_t memory_bytes() const { return memory_bytes(bytes()); }
  // Returns whether a schedule may sum the tensor.
  bool may_have_schedule() const { return !accumulates && group.empty(); }
  // Returns whether `worker` contributes to the sum and gets it.
  bool has(uint32_t worker) const { return group.empty() || std::ranges::binary_search(group, worker); }
  uint64_t bytes() const { return elements * size_of(type); }
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// The operation that a rank's first push_pull of a tensor asks for. Ranks declare it before they push, because an owner
// can only sum contributions that ask for the same operation.
struct Operation {
  std::string tensor;  // name of the tensor
  ReduceOp op = ReduceOp::kSum;
  friend bool operator==(const Operation&, const Operation&) = default;
};

// A slice of a tensor: the unit of transfer, of ownership and of priority.
struct Partition {
  uint32_t tensor = 0;
  uint32_t owner = 0;   // member index
  uint64_t offset = 0;  // bytes from the start of the tensor, element aligned
  uint32_t bytes = 0;   // at least 1; Plan::push_bytes() and answer_bytes() are at most kMaxPartitionBytes
  // The epoch in which the partition came to its owner: at least the tensor's `since`, at most the plan's epoch. Frames
  // of earlier epochs about the partition were meant for an earlier owner; members drop them (fencing).
  uint32_t since = 0;
  friend bool operator==(const Partition&, const Partition&) = default;
};

// A member of a job. When a CPU summer leaves, its place stays empty, so that the numbers of other members don't
// change. Another summer may take the place later.
struct Member {
  double bits_per_second = 0;  // each way, within the limits of model.h; 0: the place is empty
  std::string address;         // HOST:PORT of its summer; empty in a plan that is only computed
  uint32_t since = 0;  // epoch in which the member came; distinguishes it from an earlier member in the same place
  // Transports and addresses by which other members reach this one, in its order of preference
  // (common/transport/endpoint.h). Empty: by TCP at `address`.
  std::vector<std::string> endpoints;
  bool bandwidth_assumed = false;  // true: the link's bandwidth is unknown, and bits_per_second is a placeholder
  // The member is a CPU summer on *standby*: it takes part in the job, and owns no partition.
  bool on_standby = false;
  bool is_here() const { return bits_per_second > 0; }
  friend bool operator==(const Member&, const Member&) = default;
};
// Returns whether `a` and `b` are the same member. Their bandwidths and endpoints may differ.
inline bool is_same(const Member& a, const Member& b) { return a.since == b.since && a.address == b.address; }

// Returns the types in which a tensor of workers with so many local ranks travels. Partial sums are in the
// accumulator's type and not rounded, so that fp16 and bf16 are rounded once, when a sum is complete. The contributions
// of a worker with several local ranks are partial sums, unless the tensor is compressed. Results have the tensor's
// type.
inline Encoding encoding_of(const Tensor& tensor, uint32_t local_ranks = 1) {
  const DataType partial = accumulator_of(tensor.type);
  if (tensor.memory.has_value()) return {tensor.memory->contribution.value_or(tensor.type), partial, tensor.type};
  return {local_ranks > 1 ? partial : tensor.type, partial, tensor.type};
}

struct Plan {
  uint32_t epoch = 0;                 // version of the plan; 0: a plan that members have not agreed on
  uint32_t workers = 0;               // n
  uint32_t local_ranks = 1;           // g
  std::vector<Member> members;        // workers, then CPU summers and empty places
  std::vector<Tensor> tensors;        // by id, in generation order
  std::vector<Partition> partitions;  // by tensor, then by offset; they cover every byte exactly once
  // By tensor: index in `partitions` of its first; one more element holds partitions.size().
  std::vector<uint32_t> first_partition;
  // Schedules that tensors name. Later plans of the job only add some, so an index names one schedule for the whole
  // job.
  std::vector<collective::Spec> schedules;
  // The class of all sums of the job, in this plan and in all later ones, except for tensors that accumulate. A plan of
  // kRankOrder has no tensor with a schedule of kSchedule. A plan of kSchedule may have both.
  Bits bits = Bits::kSchedule;

  uint32_t summers() const;  // k: number of CPU summers, empty places not counted
  // Returns whether the bandwidth of every member is known. Without that the plan has no bound.
  bool bandwidths_known() const;
  uint32_t ranks() const { return workers * local_ranks; }
  // Returns the number of workers that contribute to sums of the tensor.
  uint32_t contributors(const Tensor& tensor) const {
    return tensor.group.empty() ? workers : static_cast<uint32_t>(tensor.group.size());
  }
  // Returns the number of ranks that contribute to sums of the tensor.
  uint32_t ranks(const Tensor& tensor) const { return contributors(tensor) * local_ranks; }
  // Calls f(worker) for each worker that contributes to sums of the tensor, in ascending order.
  template <typename F>
  void for_each_contributor(const Tensor& tensor, F f) const {
    for (uint32_t i = 0; i < contributors(tensor); ++i) f(tensor.group.empty() ? i : tensor.group[i]);
  }
  // Returns the size of an owner's answer: the partition, and for a tensor that accumulates a count of 8 bytes per
  // worker.
  uint32_t answer_bytes(const Partition& partition) const {
    return partition.bytes + counts_bytes(tensors[partition.tensor]);
  }
  uint32_t counts_bytes(const Tensor& tensor) const { return tensor.accumulates ? workers * 8 : 0; }
  Encoding encoding(const Tensor& tensor) const { return encoding_of(tensor, local_ranks); }
  Encoding encoding(const Partition& partition) const { return encoding(tensors[partition.tensor]); }
  uint32_t push_bytes(const Partition& partition) const {
    return static_cast<uint32_t>(encoding(partition).contribution_bytes(partition.bytes));
  }
  // Returns the size of a partition whose elements are partial sums.
  uint32_t partial_bytes(const Partition& partition) const {
    return static_cast<uint32_t>(encoding(partition).partial_bytes(partition.bytes));
  }
  // Returns the most bytes that a partition of the tensor may have, so that neither its contributions nor its answers
  // exceed `frame_bytes`, and neither partial sums nor the ranks' memory kMaxPartitionBytes. At least one element.
  uint64_t most_partition_bytes(const Tensor& tensor, uint64_t frame_bytes = kMaxPartitionBytes) const {
    const Encoding types = encoding(tensor);
    const uint64_t elements = std::min(
        {frame_bytes / size_of(types.contribution),
         std::min(frame_bytes, kMaxPartitionBytes - counts_bytes(tensor)) / size_of(types.result),
         kMaxPartitionBytes / size_of(types.partial), kMaxPartitionBytes / (values_of(tensor.type) * sizeof(float))});
    return std::max<uint64_t>(elements, 1) * size_of(types.result);
  }
  // Returns the index in `partitions` of this partition of `tensor`.
  uint32_t index_of(uint32_t tensor, uint32_t partition) const { return first_partition[tensor] + partition; }
  std::span<const Partition> partitions_of(uint32_t tensor) const {
    return std::span(partitions)
        .subspan(first_partition[tensor], first_partition[tensor + 1] - first_partition[tensor]);
  }
  // Returns "worker/0" or "summer/3", for example.
  std::string member_name(uint32_t member) const;

  friend bool operator==(const Plan&, const Plan&) = default;
};

// Returns the type of the tensor's elements, such as "fp32", or "fp32 sent as fp16" for a compressed tensor.
std::string types_of(const Tensor& tensor);
// Returns the number of elements in the memory of ranks with their type, such as "5000 elements of fp32 sent as int8".
std::string elements_of(const Tensor& tensor);

// Checks every rule that the comments above state. A plan that comes from another process must pass before it is used.
absl::Status validate(const Plan& plan);

// Checks only the rules about tensors: their names, types and sizes.
absl::Status validate(std::span<const Tensor> tensors);

// Checks the number and form of a member's endpoints. Transports check their meaning when they connect.
absl::Status validate_endpoints(const std::vector<std::string>& endpoints);

}  // namespace gleaner::plan
