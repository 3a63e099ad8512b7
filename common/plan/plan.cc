#include "common/plan/plan.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "common/plan/schedule_name.h"

namespace gleaner::plan {
namespace {

template <typename... Parts>
absl::Status invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", parts...));
}

absl::Status validate_members(const Plan& plan) {
  if (plan.members.size() > kMaxMembers) {
    return invalid(plan.members.size(), " members; at most ", kMaxMembers, " are possible");
  }
  if (plan.workers == 0 || plan.workers > plan.members.size()) {
    return invalid(plan.workers, " workers among ", plan.members.size(), " members");
  }
  if (plan.local_ranks == 0 || uint64_t{plan.workers} * plan.local_ranks > kMaxRanks) {
    return invalid(plan.local_ranks, " local ranks of ", plan.workers, " workers; expected 1 to ", kMaxRanks,
                   " ranks in all");
  }
  for (uint32_t i = 0; i < plan.members.size(); ++i) {
    const Member& member = plan.members[i];
    const bool is_empty_place = i >= plan.workers && member == Member();
    if (is_empty_place) continue;
    if (!(member.bits_per_second >= kMinBitsPerSecond && member.bits_per_second <= kMaxBitsPerSecond)) {
      return invalid(plan.member_name(i), " has ", member.bits_per_second, " bit/s");
    }
    if (member.on_standby && i < plan.workers) return invalid(plan.member_name(i), " is on standby; only summers are");
    if (member.since > plan.epoch) {
      return invalid(plan.member_name(i), " came in epoch ", member.since, ", which is above epoch ", plan.epoch);
    }
    if (const absl::Status status = validate_endpoints(member.endpoints); !status.ok()) {
      return invalid(plan.member_name(i), ": ", status.message());
    }
    if (member.address.empty()) continue;
    const auto address = Address::parse(member.address);
    if (!address.ok()) return invalid(plan.member_name(i), ": ", address.status().message());
  }
  return absl::OkStatus();
}

// Checks that the partitions of one tensor lie end to end from its first byte to its last.
absl::Status validate_slices(const Plan& plan, uint32_t id) {
  const Tensor& tensor = plan.tensors[id];
  const size_t element = size_of(tensor.type);
  uint64_t end = 0;
  for (const Partition& partition : plan.partitions_of(id)) {
    if (partition.tensor != id || partition.offset != end) {
      return invalid("tensor '", tensor.name, "': expected a partition from its byte ", end, " on; got one from byte ",
                     partition.offset, " of tensor ", partition.tensor);
    }
    const uint64_t most = plan.most_partition_bytes(tensor);
    if (partition.bytes == 0 || partition.bytes > most || partition.bytes % element != 0) {
      return invalid("tensor '", tensor.name, "': a partition of ", partition.bytes, " bytes; expected whole ",
                     name_of(tensor.type), " elements, at most ", most, " bytes");
    }
    if (partition.owner >= plan.members.size()) {
      return invalid("tensor '", tensor.name, "': owner ", partition.owner, " of ", plan.members.size(), " members");
    }
    if (partition.owner < plan.workers && !tensor.has(partition.owner)) {
      return invalid("tensor '", tensor.name, "': owner ", plan.member_name(partition.owner),
                     ", which is not in the tensor's group");
    }
    if (!plan.members[partition.owner].is_here()) {
      return invalid("tensor '", tensor.name, "': owner ", plan.member_name(partition.owner), ", whose place is empty");
    }
    if (plan.members[partition.owner].on_standby) {
      return invalid("tensor '", tensor.name, "': owner ", plan.member_name(partition.owner), ", which is on standby");
    }
    if (partition.since > plan.epoch || partition.since < tensor.since) {
      return invalid("tensor '", tensor.name, "' of epoch ", tensor.since, ": a partition owned since epoch ",
                     partition.since, " in a plan of epoch ", plan.epoch);
    }
    end += partition.bytes;
  }
  if (end != tensor.bytes()) {
    return invalid("tensor '", tensor.name, "': partitions of ", end, " bytes in all; it has ", tensor.bytes());
  }
  return absl::OkStatus();
}

absl::Status validate_partitions(const Plan& plan) {
  if (plan.partitions.size() > kMaxPartitions) {
    return invalid(plan.partitions.size(), " partitions; at most ", kMaxPartitions, " are possible");
  }
  const auto& first = plan.first_partition;
  if (first.size() != plan.tensors.size() + 1 || first.front() != 0 || first.back() != plan.partitions.size()) {
    return invalid("first_partition does not index ", plan.partitions.size(), " partitions of ", plan.tensors.size(),
                   " tensors");
  }
  // Check the whole index first, since partitions_of() relies on it.
  for (size_t id = 0; id < plan.tensors.size(); ++id) {
    if (first[id] > first[id + 1]) return invalid("first_partition falls after tensor ", id);
  }
  for (uint32_t id = 0; id < plan.tensors.size(); ++id) GLN_RETURN_IF_ERROR(validate_slices(plan, id));
  return absl::OkStatus();
}

// Checks the specs of schedules. Whether an algorithm serves them, common/collective says.
absl::Status validate_schedules(const Plan& plan) {
  if (plan.schedules.size() > kMaxSchedules) {
    return invalid(plan.schedules.size(), " schedules; at most ", kMaxSchedules, " are possible");
  }
  for (const collective::Spec& schedule : plan.schedules) {
    GLN_RETURN_IF_ERROR(check_name("an algorithm's name", schedule.algorithm, kMaxAlgorithmNameBytes));
    if (schedule.factors.size() > plan.workers) {
      return invalid("schedule ", schedule.algorithm, " has ", schedule.factors.size(), " stages for ", plan.workers,
                     " workers");
    }
    if (std::max({schedule.group_sizes.size(), schedule.masters.global.size(), schedule.masters.local.size()}) >
        plan.workers) {
      return invalid("schedule ", schedule.algorithm, " has more groups, or more ranks with chunks, than ",
                     plan.workers, " workers");
    }
    if (schedule.rank_of.empty()) continue;
    std::vector<bool> taken(plan.workers);
    for (const uint32_t rank : schedule.rank_of) {
      if (rank >= plan.workers || taken[rank]) {
        return invalid("schedule ", schedule.algorithm, ": rank ", rank, " of ", plan.workers,
                       " workers; expected each rank once");
      }
      taken[rank] = true;
    }
    if (schedule.rank_of.size() != plan.workers) {
      return invalid("schedule ", schedule.algorithm, " has ranks for ", schedule.rank_of.size(), " workers of ",
                     plan.workers);
    }
  }
  for (const Tensor& tensor : plan.tensors) {
    if (!tensor.group.empty() && (tensor.group.back() >= plan.workers || tensor.group.size() == plan.workers)) {
      return invalid("tensor '", tensor.name, "' has a group of ", tensor.group.size(), " workers up to ",
                     tensor.group.back(), "; expected some of ", plan.workers, " workers, or none for all");
    }
    if (!tensor.group.empty() && tensor.schedule.has_value()) {
      return invalid("tensor '", tensor.name, "' has a group and a schedule; schedules sum over all workers");
    }
    if (tensor.accumulates && tensor.schedule_from != 0) {
      return invalid("tensor '", tensor.name, "' changes its strategy from push_pull ", tensor.schedule_from,
                     " on; a tensor that accumulates never does");
    }
    if (!tensor.schedule.has_value()) continue;
    if (*tensor.schedule >= plan.schedules.size() || tensor.accumulates) {
      return invalid("tensor '", tensor.name, "' has schedule ", *tensor.schedule, " of ", plan.schedules.size(),
                     tensor.accumulates ? "; a tensor that accumulates has none" : "");
    }
    const collective::Spec& schedule = plan.schedules[*tensor.schedule];
    if (plan.bits == Bits::kRankOrder && bits_of(schedule) != Bits::kRankOrder) {
      return invalid("tensor '", tensor.name, "' is summed by ", name_of(schedule), ", whose bits are of class ",
                     name_of(Bits::kSchedule), "; the plan is of class ", name_of(plan.bits));
    }
  }
  return absl::OkStatus();
}

// Checks a tensor that does not travel as the memory of ranks holds it.
absl::Status validate_compressed(const Tensor& tensor) {
  const Memory& memory = *tensor.memory;
  const std::string name = absl::StrCat("tensor '", tensor.name, "' of ", name_of(memory.type));
  const DataType contribution = memory.contribution.value_or(tensor.type);
  const bool are_signs = contribution == kSignBlock && tensor.type == kInt8Block;
  const bool may_travel =
      is_16_bit(tensor.type) || (is_block(tensor.type) && tensor.type != kFloat32Block && tensor.type != kSignBlock);
  if (!may_travel || memory.type != DataType::kFloat32 || (contribution != tensor.type && !are_signs)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " can't be sent as ", name_of(contribution), "; only fp32 can, as fp16, bf16 or in blocks"));
  }
  // Divide, because a product could overflow.
  if (elements_for(tensor.type, memory.elements) != tensor.elements ||
      memory.elements > kMaxStreamBytes / size_of(memory.type)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has ", memory.elements, " elements, and ", tensor.elements,
                                                   " of ", values_of(tensor.type),
                                                   " values are sent; expected all of them"));
  }
  if (!(memory.momentum >= 0 && memory.momentum < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has a momentum of ", memory.momentum, "; expected 0 to below 1"));
  }
  if (is_block(tensor.type) || (!memory.feeds_back && memory.momentum == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is sent as ", name_of(tensor.type), ", which has neither error feedback nor momentum"));
}

// Returns whether the bits of the type depend on a seed.
bool is_random(DataType type) { return type == kInt4Block || is_random_k(type); }

}  // namespace

uint32_t Plan::summers() const {
  return static_cast<uint32_t>(
      std::count_if(members.begin() + workers, members.end(), [](const Member& member) { return member.is_here(); }));
}

bool Plan::bandwidths_known() const {
  return std::none_of(members.begin(), members.end(), [](const Member& member) { return member.bandwidth_assumed; });
}

std::string Plan::member_name(uint32_t member) const {
  return member < workers ? absl::StrCat("worker/", member) : absl::StrCat("summer/", member - workers);
}

std::string types_of(const Tensor& tensor) {
  if (!tensor.memory.has_value()) return std::string(name_of(tensor.type));
  const Memory& memory = *tensor.memory;
  std::string text =
      absl::StrCat(name_of(memory.type), " sent as ", name_of(memory.contribution.value_or(tensor.type)));
  if (is_random(tensor.type)) absl::StrAppend(&text, " of seed ", memory.seed);
  if (is_block(tensor.type) && !memory.feeds_back) absl::StrAppend(&text, " without error feedback");
  if (memory.momentum > 0) absl::StrAppend(&text, " with momentum ", memory.momentum);
  return text;
}

std::string elements_of(const Tensor& tensor) {
  const uint64_t elements = tensor.memory.has_value() ? tensor.memory->elements : tensor.elements;
  return absl::StrCat(elements, " elements of ", types_of(tensor));
}

absl::Status validate(std::span<const Tensor> tensors) {
  absl::flat_hash_set<absl::string_view> names;
  names.reserve(tensors.size());
  uint64_t stream = 0;
  for (const Tensor& tensor : tensors) {
    GLN_RETURN_IF_ERROR(check_name("a tensor's name", tensor.name, kMaxTensorNameBytes));
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' appears twice; names must be unique"));
    }
    if (!is_valid(tensor.type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "' has unknown data type ", static_cast<int>(tensor.type)));
    }
    const bool may_accumulate = tensor.type == DataType::kFloat32 || tensor.type == DataType::kInt32;
    if (tensor.accumulates ? !may_accumulate : tensor.staleness != kUnbounded) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' of ", name_of(tensor.type),
                                                     tensor.accumulates ? " can't be accumulated: fp32 and int32 can"
                                                                        : " has a staleness, but is not accumulated"));
    }
    if (tensor.memory.has_value()) GLN_RETURN_IF_ERROR(validate_compressed(tensor));
    if (is_block(tensor.type) && !tensor.memory.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' of ", name_of(tensor.type),
                                                     " is not compressed; only compressed tensors travel in blocks"));
    }
    if (tensor.accumulates && !tensor.group.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "' accumulates, and has a group; all workers accumulate"));
    }
    if (std::ranges::adjacent_find(tensor.group, std::ranges::greater_equal()) != tensor.group.end()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' has a group of ", tensor.group.size(),
                                                     " workers that are not in ascending order"));
    }
    // Divide, because a product could overflow: `elements` may come from outside the process.
    if (tensor.elements > (kMaxStreamBytes - stream) / size_of(tensor.type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name, "' of ", tensor.elements, " ", name_of(tensor.type),
                       " elements: all tensors together have at most ", kMaxStreamBytes, " bytes"));
    }
    stream += tensor.bytes();
  }
  return absl::OkStatus();
}

absl::Status validate_endpoints(const std::vector<std::string>& endpoints) {
  if (endpoints.size() > kMaxEndpoints) {
    return absl::InvalidArgumentError(
        absl::StrCat(endpoints.size(), " endpoints; at most ", kMaxEndpoints, " are possible"));
  }
  for (const std::string& endpoint : endpoints) {
    const bool is_printable = std::all_of(endpoint.begin(), endpoint.end(),
                                          [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
    if (endpoint.empty() || endpoint.size() > kMaxEndpointBytes || !is_printable) {
      return absl::InvalidArgumentError(absl::StrCat("an endpoint of ", endpoint.size(), " bytes; expected 1 to ",
                                                     kMaxEndpointBytes,
                                                     " that are printable, such as tcp://10.0.0.1:7000"));
    }
  }
  return absl::OkStatus();
}

absl::Status validate(const Plan& plan) {
  GLN_RETURN_IF_ERROR(validate_members(plan));
  GLN_RETURN_IF_ERROR(validate(std::span(plan.tensors)));
  GLN_RETURN_IF_ERROR(validate_schedules(plan));
  return validate_partitions(plan);
}

}  // namespace gleaner::plan
