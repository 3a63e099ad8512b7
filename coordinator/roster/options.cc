#include "coordinator/roster/options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/collective/algorithms.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::coordinator {
namespace {

absl::Status check_bandwidths(absl::string_view role, uint32_t count, const std::vector<double>& list) {
  if (!list.empty() && list.size() != count) {
    return absl::InvalidArgumentError(absl::StrCat("expected a bandwidth for each of ", count, " ", role, "s; got ",
                                                   list.size(), ": give one for each, or none"));
  }
  for (const double bandwidth : list) {
    if (bandwidth == 0) continue;  // not known
    if (!(bandwidth >= plan::kMinBitsPerSecond && bandwidth <= plan::kMaxBitsPerSecond)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a ", role, "'s bandwidth of ", bandwidth, " bit/s; expected 1 to ", plan::kMaxBitsPerSecond));
    }
  }
  return absl::OkStatus();
}

absl::Status check_elastic(const Options& options) {
  if (!options.is_elastic() && options.min_workers == 0) return absl::OkStatus();
  const bool in_order =
      options.min_workers > 0 && options.min_workers <= options.workers && options.workers <= options.max_workers;
  if (!in_order || uint64_t{options.max_workers} + options.summers > plan::kMaxMembers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an elastic job with ", options.min_workers, " to ", options.max_workers, " workers that begins with ",
        options.workers, "; expected 1 <= least <= first <= most, and at most ", plan::kMaxMembers, " members in all"));
  }
  if (options.local_ranks > 1) {
    return absl::InvalidArgumentError(absl::StrCat("an elastic job has one rank per worker, not ", options.local_ranks,
                                                   "; start each process as a worker of its own"));
  }
  return absl::OkStatus();
}

// Checks that the schedule can be made. The number of workers of an elastic job changes, so its algorithm must serve
// every number of workers.
absl::Status check_schedule(const Options& options) {
  const collective::Spec* const schedule = schedule_of(options.reduction.strategy);
  if (schedule == nullptr) return absl::OkStatus();
  const bool serves_every_number = schedule->factors.empty() && schedule->radix == 0 && schedule->algorithm != "bcube";
  if (options.is_elastic() && !serves_every_number) {
    return absl::InvalidArgumentError(
        absl::StrCat("strategy ", schedule->algorithm,
                     " with these options serves only some numbers of workers, and those of an elastic job change; "
                     "choose gather, ring, halving-doubling or double-tree, or blueconnect, racks or two-level without "
                     "--stages"));
  }
  const auto made = collective::make_schedule(*schedule, options.workers);
  if (made.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("strategy ", schedule->algorithm, ": ", made.status().message()));
}

absl::Status check_bits(const Options::Reduction& reduction) {
  const collective::Spec* const schedule = schedule_of(reduction.strategy);
  if (schedule == nullptr || bits_of(reduction) != plan::Bits::kRankOrder) return absl::OkStatus();
  if (plan::bits_of(*schedule) == plan::Bits::kRankOrder) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("bits RankOrder need a strategy that sums in rank order, and ", schedule->algorithm,
                   " sums in an order of its own; choose the strategy auto, summers or gather, or the bits Schedule"));
}

absl::Status check_network(const Options& options) {
  if (options.reduction.network == nullptr) return absl::OkStatus();
  if (options.is_elastic()) {
    return absl::InvalidArgumentError("an elastic job has no network, since its workers change hosts; leave it out");
  }
  return strategy::validate(*options.reduction.network, options.workers, options.summers);
}

}  // namespace

plan::Bits bits_of(const Options::Reduction& reduction) {
  if (reduction.bits.has_value()) return *reduction.bits;
  const collective::Spec* const schedule = schedule_of(reduction.strategy);
  return schedule == nullptr ? plan::Bits::kRankOrder : plan::bits_of(*schedule);
}

absl::Status validate(const Options& options) {
  GLN_RETURN_IF_ERROR(check_name("the job's name", options.job));
  if (options.workers == 0 || uint64_t{options.workers} + options.summers > plan::kMaxMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat(counted(options.workers, "worker"), " and ", counted(options.summers, "summer"),
                     "; expected at least one worker, and at most ", plan::kMaxMembers, " members in all"));
  }
  if (options.local_ranks == 0 || uint64_t{options.workers} * options.local_ranks > plan::kMaxRanks) {
    return absl::InvalidArgumentError(absl::StrCat(options.local_ranks, " local ranks of ", options.workers,
                                                   " workers; expected at least one, and at most ", plan::kMaxRanks,
                                                   " ranks in all"));
  }
  GLN_RETURN_IF_ERROR(check_bandwidths("worker", options.workers, options.worker_bits_per_second));
  GLN_RETURN_IF_ERROR(check_bandwidths("summer", options.summers, options.summer_bits_per_second));
  GLN_RETURN_IF_ERROR(check_elastic(options));
  GLN_RETURN_IF_ERROR(check_schedule(options));
  GLN_RETURN_IF_ERROR(check_bits(options.reduction));
  GLN_RETURN_IF_ERROR(check_network(options));
  if (options.bits_per_second != 0) {
    GLN_RETURN_IF_ERROR(check_bandwidths("member", 1, {options.bits_per_second}));
  }
  if (options.partition_bytes != 0 &&
      (options.partition_bytes < plan::kMinPartitionBytes || options.partition_bytes > plan::kMaxPartitionBytes)) {
    return absl::InvalidArgumentError(absl::StrCat("partitions of ", options.partition_bytes, " bytes; expected ",
                                                   plan::kMinPartitionBytes, " to ", plan::kMaxPartitionBytes));
  }
  const absl::Duration least = absl::Milliseconds(100);
  if (options.start_timeout < least || options.deadline < least || options.declare_timeouts.waiting < least ||
      options.declare_timeouts.busy.value_or(least) < least) {
    return absl::InvalidArgumentError("timeouts and the deadline are at least 100 ms");
  }
  return absl::OkStatus();
}

}  // namespace gleaner::coordinator
