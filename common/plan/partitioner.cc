#include "common/plan/partitioner.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/balance.h"

namespace gleaner::plan {
namespace {

constexpr double kLinkSeconds = 1.4e-3;
constexpr double kLinkSecondsOfAll = 22.4e-3;  // of n partitions together, for n above 16
constexpr double kLeastWindowSeconds = 10e-3;
constexpr double kLeastWindowBytes = 64 << 10;
constexpr double kScheduledInFlight = 4;  // partitions of schedules
// More bytes than any link needs in flight, and small enough that no product with it overflows.
constexpr uint64_t kMostWindowBytes = uint64_t{1} << 44;
// A partition costs a CPU about 10 us beside the work on its bytes.
constexpr double kLeastLinkSeconds = 100e-6;
constexpr double kEnoughBytes = 64 << 10;
constexpr double kFastestLinkSeconds = 10e-6;
constexpr double kLeastBytes = 4096;
constexpr double kLeastByLink = 8192;
// Bytes that a partition adds on the wire: headers, acknowledgement, and a last packet that is not full.
constexpr double kFrameBytes = 160;
constexpr double kFrameSeconds = 10e-6;
constexpr uint64_t kFinestFraction = 32;  // trimming adds at most one slice per owner
constexpr uint64_t kFinestBytes = 1024;

uint64_t power_of_two_below(double bytes) { return std::bit_floor(static_cast<uint64_t>(std::max(bytes, 1.0))); }

// Returns the bandwidth of the slowest member that has a share, in bits per second.
double slowest_owner(const Fleet& fleet) {
  const std::vector<double> share = shares(fleet);
  double slowest = kMaxBitsPerSecond;
  for (size_t i = 0; i < share.size(); ++i) {
    if (share[i] > 0) slowest = std::min(slowest, fleet.bits_per_second(i));
  }
  return slowest;
}

uint64_t total_bytes(std::span<const Tensor> tensors) {
  uint64_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.bytes();
  return total;
}

// Returns the size of the first slice when `bytes` are cut into the fewest equal slices of at most `most` bytes. Slices
// are whole elements and differ by at most one element, so no tiny slice is left at the end.
uint64_t first_slice(uint64_t bytes, uint64_t most, uint64_t element) {
  const uint64_t elements = bytes / element;
  const uint64_t per_slice = std::max<uint64_t>(1, most / element);
  const uint64_t slices = (elements + per_slice - 1) / per_slice;
  return (elements + slices - 1) / slices * element;
}

// The largest size of a partition of each tensor.
class Sizes {
 public:
  // `by_default`: the size for tensors that owners sum, if the options give none. The pointers must outlive this
  // object.
  Sizes(const Plan* plan, const PartitionOptions* options, uint64_t by_default)
      : plan_(*plan),
        options_(*options),
        owned_(options->partition_bytes > 0 ? options->partition_bytes : by_default),
        workers_(workers_of(*plan)) {}

  // The size for tensors that owners sum.
  uint64_t owned() const { return owned_; }
  uint64_t most(const Tensor& tensor) const {
    if (!tensor.schedule.has_value()) return plan_.most_partition_bytes(tensor, owned_);
    const uint32_t schedule = *tensor.schedule;
    const ScheduleCut cut = schedule < options_.schedules.size() ? options_.schedules[schedule] : ScheduleCut();
    const uint64_t size = options_.partition_bytes > 0
                              ? options_.partition_bytes
                              : sliced_partition_bytes(default_partition_bytes(workers_, tensor.bytes()), cut.slices);
    const Encoding types = plan_.encoding(tensor);
    const DataType travels = cut.has_partial_sums ? types.partial : types.contribution;
    return std::min(std::min(size, kMaxPartitionBytes / cut.blocks) / size_of(travels) * size_of(types.result),
                    plan_.most_partition_bytes(tensor));
  }

 private:
  static Fleet workers_of(const Plan& plan) {
    Fleet fleet = fleet_of(plan);
    fleet.summer_bits_per_second.clear();
    fleet.push_ratio = 1;
    return fleet;
  }

  const Plan& plan_;
  const PartitionOptions& options_;
  const uint64_t owned_;
  const Fleet workers_;
};

// Returns the size of the largest slice that cut() makes of the tensors from index `first` on.
uint64_t largest_slice(const Plan& plan, size_t first, const Sizes& sizes) {
  uint64_t largest = 0;
  for (const Tensor& tensor : std::span(plan.tensors).subspan(first)) {
    if (tensor.elements == 0) continue;
    const uint64_t fits = sizes.most(tensor);
    largest = std::max(largest, first_slice(tensor.bytes(), fits, size_of(tensor.type)));
  }
  return largest;
}

uint64_t largest_partition(const Plan& plan) {
  uint64_t largest = 0;
  for (const Partition& partition : plan.partitions) largest = std::max<uint64_t>(largest, partition.bytes);
  return largest;
}

// Returns the size of the largest partial sum of a partition that schedules sum, or else contribution to one that
// owners sum.
uint64_t largest_push(const Plan& plan, bool has_schedule) {
  uint64_t largest = 0;
  for (const Partition& partition : plan.partitions) {
    if (plan.tensors[partition.tensor].schedule.has_value() != has_schedule) continue;
    largest = std::max<uint64_t>(largest, has_schedule ? plan.partial_bytes(partition) : plan.push_bytes(partition));
  }
  return largest;
}

// Shortens a slice to the bytes that its owner lacks of its share of the stream, but to no less than `finest` bytes.
// Leaves the slice as it is if fewer than `finest` bytes of the tensor would remain after the cut.
uint64_t trim(uint64_t slice, double missing, uint64_t left_of_tensor, uint64_t finest, uint64_t element) {
  const double bytes = std::max(missing, static_cast<double>(finest));
  if (bytes >= static_cast<double>(slice)) return slice;
  const uint64_t trimmed = (static_cast<uint64_t>(bytes) + element - 1) / element * element;
  return trimmed + finest <= left_of_tensor ? std::min(trimmed, slice) : slice;
}

// A stream of tensors whose partitions are dealt together: those of a group of workers, with or without a schedule.
struct Stream {
  explicit Stream(const Tensor& tensor) : has_schedule(tensor.schedule.has_value()), group(tensor.group) {}
  bool has_schedule;
  std::vector<uint32_t> group;
  friend auto operator<=>(const Stream&, const Stream&) = default;
};

// The shares of all streams of a plan.
class Shares {
 public:
  // `of_all`: the shares of tensors of all workers. The pointer must outlive this object.
  Shares(const Plan* plan, std::vector<double> of_all) : plan_(*plan), fleet_(fleet_of(*plan)) {
    by_group_[{}] = std::move(of_all);
  }

  size_t groups() const { return by_group_.size(); }
  const std::vector<double>& of(const Tensor& tensor) {
    auto [found, is_new] = by_group_.try_emplace(tensor.group);
    if (is_new) found->second = of_group(tensor.group);
    return found->second;
  }

 private:
  std::vector<double> of_group(const std::vector<uint32_t>& group) const {
    Fleet fleet = fleet_;
    fleet.worker_bits_per_second.clear();
    for (const uint32_t worker : group) fleet.worker_bits_per_second.push_back(fleet_.worker_bits_per_second[worker]);
    const double part = static_cast<double>(group.size()) / plan_.workers;
    for (double& bandwidth : fleet.summer_bits_per_second) {
      if (bandwidth > 0) bandwidth = std::max(bandwidth * part, kMinBitsPerSecond);
    }
    const std::vector<double> own = shares(fleet);
    std::vector<double> by_member(fleet_.n());
    for (size_t i = 0; i < group.size(); ++i) by_member[group[i]] = own[i];
    by_member.insert(by_member.end(), own.begin() + static_cast<std::ptrdiff_t>(group.size()), own.end());
    return by_member;
  }

  const Plan& plan_;
  const Fleet fleet_;
  std::map<std::vector<uint32_t>, std::vector<double>> by_group_;
};

// The balance of each stream. Owners own the partitions of tensors with a schedule only for the case that a later plan
// has owners sum them.
class Balances {
 public:
  // `owned`: the bytes of these partitions count as dealt. The pointers must outlive this object.
  Balances(Shares* shares, const Plan* plan, std::span<const Partition> owned, uint64_t largest)
      : shares_(*shares), plan_(*plan), largest_(largest) {
    for (const Partition& partition : owned) {
      bytes_of(plan_.tensors[partition.tensor]).owned[partition.owner] += partition.bytes;
    }
    for (const Tensor& tensor : plan_.tensors) bytes_of(tensor).total += tensor.bytes();
  }

  Balance& of(const Tensor& tensor) {
    const Stream stream(tensor);
    const auto found = balances_.find(stream);
    if (found != balances_.end()) return found->second;
    const Bytes& bytes = bytes_of(tensor);
    return balances_.try_emplace(stream, shares_.of(tensor), bytes.owned, bytes.total, largest_).first->second;
  }

 private:
  struct Bytes {
    std::vector<uint64_t> owned;  // by member
    uint64_t total = 0;
  };

  Bytes& bytes_of(const Tensor& tensor) {
    return bytes_.try_emplace(Stream(tensor), Bytes{std::vector<uint64_t>(plan_.members.size())}).first->second;
  }

  Shares& shares_;
  const Plan& plan_;
  const uint64_t largest_;
  std::map<Stream, Bytes> bytes_;
  std::map<Stream, Balance> balances_;
};

// Cuts the tensors from index `first` on into partitions and chooses their owners.
void cut(Plan& plan, size_t first, const Sizes& sizes, uint64_t finest, Balances& balances) {
  for (size_t id = first; id < plan.tensors.size(); ++id) {
    Balance& balance = balances.of(plan.tensors[id]);
    const uint64_t bytes = plan.tensors[id].bytes();
    const uint64_t element = size_of(plan.tensors[id].type);
    const uint64_t fits = sizes.most(plan.tensors[id]);
    for (uint64_t offset = 0; offset < bytes;) {
      uint64_t slice = first_slice(bytes - offset, fits, element);
      const uint32_t owner = balance.next(slice);
      if (!plan.tensors[id].schedule.has_value()) {
        slice = trim(slice, balance.missing(owner), bytes - offset, finest, element);
      }
      balance.give(slice);
      plan.partitions.push_back({.tensor = static_cast<uint32_t>(id),
                                 .owner = owner,
                                 .offset = offset,
                                 .bytes = static_cast<uint32_t>(slice),
                                 .since = plan.epoch});
      offset += slice;
    }
    plan.first_partition.push_back(static_cast<uint32_t>(plan.partitions.size()));
  }
}

absl::Status check_partition_bytes(uint64_t bytes) {
  if (bytes == 0 || (bytes >= kMinPartitionBytes && bytes <= kMaxPartitionBytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("partitions of ", bytes, " bytes: expected ", kMinPartitionBytes,
                                                 " to ", kMaxPartitionBytes, " bytes (4 MiB), or 0 for the default"));
}

}  // namespace

PartitionLimits partition_limits(const Fleet& fleet, uint64_t total_bytes) {
  const double bytes_per_second = *std::ranges::min_element(fleet.worker_bits_per_second) / 8;
  const double link = std::min(kLinkSeconds, kLinkSecondsOfAll / fleet.n()) * bytes_per_second;
  const double step = bound_seconds(fleet, static_cast<double>(total_bytes));
  const double frame = kFrameBytes + kFrameSeconds * bytes_per_second;
  return {.by_link = std::max(link, kLeastByLink),
          .by_stream = std::sqrt(frame * slowest_owner(fleet) / 8 * step / (2.0 * fleet.n())),
          .by_overhead = std::max({std::min(kLeastLinkSeconds * bytes_per_second, kEnoughBytes),
                                   kFastestLinkSeconds * bytes_per_second, kLeastBytes})};
}

uint64_t default_partition_bytes(const Fleet& fleet, uint64_t total_bytes) {
  const PartitionLimits limits = partition_limits(fleet, total_bytes);
  const double bytes = std::max(std::min(limits.by_link, limits.by_stream), limits.by_overhead);
  return power_of_two_below(std::min(bytes, static_cast<double>(kMaxPartitionBytes)));
}

uint64_t least_slice_bytes(uint64_t size, uint64_t by_default) {
  return std::min(size, std::max(std::min(size, by_default) / kFinestFraction, kFinestBytes));
}

uint64_t sliced_partition_bytes(uint64_t by_default, double slices) {
  const double bytes = static_cast<double>(by_default) * std::max(1.0, slices);
  return power_of_two_below(std::min(bytes, static_cast<double>(kMaxPartitionBytes)));
}

uint64_t window_bytes(const Plan& plan, uint32_t worker, uint64_t asked, double round_trip) {
  const uint64_t owned = std::max<uint64_t>(1, largest_push(plan, false));
  const uint64_t largest = std::max(owned, largest_push(plan, true));
  const double link = plan.members[worker].bits_per_second / 8;
  const uint64_t least = static_cast<uint64_t>(std::max(kLeastWindowSeconds * link, kLeastWindowBytes));
  const uint64_t by_default =
      std::max(uint64_t{2} * plan.workers * owned, least) + static_cast<uint64_t>(round_trip * link);
  const uint64_t window = asked > 0 ? std::min(asked, kMostWindowBytes) : by_default;
  return (window + largest - 1) / largest * largest;
}

uint64_t schedule_window_bytes(const Plan& plan, uint32_t worker, uint64_t asked, double round_trip) {
  if (asked > 0) return std::min(asked, kMostWindowBytes);
  const auto largest = static_cast<double>(largest_push(plan, true));
  return static_cast<uint64_t>(schedule_limits(largest, plan.members[worker].bits_per_second, 0, round_trip).in_flight);
}

uint64_t peer_window_bytes(const Plan& plan, uint32_t worker, uint64_t header_bytes, uint64_t asked,
                           double round_trip) {
  if (asked > 0) return asked;
  const auto largest = static_cast<double>(largest_push(plan, true));
  const auto header = static_cast<double>(header_bytes);
  return static_cast<uint64_t>(
      schedule_limits(largest, plan.members[worker].bits_per_second, header, round_trip).peer_window);
}

ScheduleLimits schedule_limits(double largest, double bits_per_second, double header_bytes, double round_trip) {
  const double link = bits_per_second / 8 * (kLeastWindowSeconds + round_trip);
  return {.in_flight = std::max({kScheduledInFlight * largest, link, kLeastWindowBytes}),
          .peer_window = std::max(2 * (largest + header_bytes), link)};
}

absl::StatusOr<Plan> make_plan(const Fleet& fleet, std::vector<Tensor> tensors, const PartitionOptions& options,
                               uint32_t local_ranks) {
  GLN_RETURN_IF_ERROR(validate(fleet));
  Plan plan;
  plan.workers = fleet.n();
  plan.local_ranks = local_ranks;
  plan.first_partition = {0};
  plan.members.reserve(fleet.n() + fleet.k());
  for (double bandwidth : fleet.worker_bits_per_second) plan.members.push_back({bandwidth, {}, 0});
  for (double bandwidth : fleet.summer_bits_per_second) plan.members.push_back({bandwidth, {}, 0});
  return extend_plan(plan, std::move(tensors), options, 0);
}

absl::StatusOr<Plan> extend_plan(const Plan& plan, std::vector<Tensor> added, const PartitionOptions& options,
                                 uint32_t epoch) {
  GLN_RETURN_IF_ERROR(check_partition_bytes(options.partition_bytes));
  Plan extended = plan;
  extended.epoch = epoch;
  const size_t first = extended.tensors.size();
  for (Tensor& tensor : added) tensor.since = epoch;
  std::ranges::move(added, std::back_inserter(extended.tensors));
  GLN_RETURN_IF_ERROR(validate(extended.tensors));

  const Fleet fleet = fleet_of(extended);
  Shares share(&extended, options.shares.empty() ? shares(fleet) : options.shares);
  const uint64_t by_default = default_partition_bytes(fleet, total_bytes(extended.tensors));
  const Sizes sizes(&extended, &options, by_default);
  const uint64_t finest = least_slice_bytes(sizes.owned(), by_default);
  const std::span<const Tensor> fresh = std::span(extended.tensors).subspan(first);
  // Upper bound: rounding adds at most one slice per tensor, and trimming at most one per owner of each group.
  uint64_t most_partitions = extended.partitions.size() + fresh.size();
  for (const Tensor& tensor : fresh) {
    share.of(tensor);
    most_partitions += tensor.bytes() / sizes.most(tensor);
  }
  most_partitions += share.groups() * extended.members.size();
  if (most_partitions > kMaxPartitions) {
    return absl::InvalidArgumentError(absl::StrCat("up to ", most_partitions, " partitions of ", sizes.owned(),
                                                   " bytes; a plan holds at most ", kMaxPartitions,
                                                   ": choose larger partitions (up to 4 MiB) or smaller tensors"));
  }
  extended.partitions.reserve(most_partitions);
  extended.first_partition.reserve(extended.tensors.size() + 1);
  const uint64_t largest = std::max(largest_slice(extended, first, sizes), largest_partition(plan));
  Balances balances(&share, &extended, plan.partitions, largest);
  cut(extended, first, sizes, finest, balances);
  return extended;
}

Plan reassign(const Plan& plan, std::vector<Member> members, uint32_t epoch, Reassign which,
              std::vector<double> shares_of_all) {
  Plan changed = plan;
  changed.epoch = epoch;
  changed.members = std::move(members);
  const auto is_gone = [&](uint32_t member) {
    return !changed.members[member].is_here() || !is_same(changed.members[member], plan.members[member]);
  };
  const auto give = [&](Partition& partition, uint32_t owner) {
    if (owner == partition.owner && !is_gone(owner)) return;
    partition.owner = owner;
    partition.since = epoch;
  };
  if (shares_of_all.empty()) shares_of_all = shares(fleet_of(changed));
  Shares share(&changed, std::move(shares_of_all));
  if (which == Reassign::kAll) {
    Balances balances(&share, &changed, {}, largest_partition(plan));
    for (Partition& partition : changed.partitions) {
      Balance& balance = balances.of(changed.tensors[partition.tensor]);
      give(partition, balance.next(partition.bytes));
      balance.give(partition.bytes);
    }
    return changed;
  }
  // By group and member: bytes that it lacks of its share of the group's stream up to this partition.
  std::map<std::vector<uint32_t>, std::vector<double>> lacks_of_groups;
  for (Partition& partition : changed.partitions) {
    const Tensor& tensor = changed.tensors[partition.tensor];
    const std::vector<double>& wanted = share.of(tensor);
    std::vector<double>& lacks = lacks_of_groups.try_emplace(tensor.group, wanted.size()).first->second;
    for (size_t i = 0; i < wanted.size(); ++i) lacks[i] += wanted[i] * partition.bytes;
    if (is_gone(partition.owner)) {
      // The lacks add up to the bytes of this partition, so the greatest is positive, and its member has a share.
      give(partition, static_cast<uint32_t>(std::ranges::max_element(lacks) - lacks.begin()));
    }
    lacks[partition.owner] -= partition.bytes;
  }
  return changed;
}

Fleet fleet_of(const Plan& plan) {
  Fleet fleet;
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    auto& side = member < plan.workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second;
    side.push_back(plan.members[member].on_standby ? 0 : plan.members[member].bits_per_second);
  }
  double stream = 0, pushes = 0;
  for (const Tensor& tensor : plan.tensors) {
    stream += static_cast<double>(tensor.bytes());
    pushes += static_cast<double>(plan.encoding(tensor).contribution_bytes(tensor.bytes()));
  }
  if (stream > 0) fleet.push_ratio = pushes / stream;
  return fleet;
}

std::vector<uint64_t> owned_bytes(const Plan& plan) {
  std::vector<uint64_t> owned(plan.members.size());
  for (const Partition& partition : plan.partitions) owned[partition.owner] += partition.bytes;
  return owned;
}

}  // namespace gleaner::plan
