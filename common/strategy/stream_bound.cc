#include "common/strategy/stream_bound.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/accumulator.h"
#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/strategy/candidates.h"
#include "common/strategy/choice.h"

namespace gleaner::strategy {
namespace {

// The bytes of the tensors that a schedule sums.
struct ScheduleBytes {
  double narrow = 0;  // of narrow types
  double others = 0;  // blocks included
  double wider = 0;   // that partial sums of blocks have beyond those of blocks
};

std::vector<ScheduleBytes> bytes_by_schedule(const plan::Plan& plan) {
  std::vector<ScheduleBytes> bytes(plan.schedules.size());
  for (const plan::Tensor& tensor : plan.tensors) {
    if (!tensor.schedule.has_value()) continue;
    ScheduleBytes& of_schedule = bytes[*tensor.schedule];
    const auto all = static_cast<double>(tensor.bytes());
    (is_16_bit(tensor.type) ? of_schedule.narrow : of_schedule.others) += all;
    if (is_block(tensor.type)) {
      of_schedule.wider += static_cast<double>(tensor.elements * size_of(accumulator_of(tensor.type))) - all;
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<StreamBound> stream_bound(const plan::Plan& plan, const JobNetwork* known) {
  for (const plan::Tensor& tensor : plan.tensors) {
    if (tensor.group.empty()) continue;
    return absl::UnimplementedError(
        absl::StrCat("tensor '", tensor.name, "' is summed by a group of workers; such sums have no bound here"));
  }
  plan::Fleet fleet = plan::fleet_of(plan);
  StreamBound by_owners{.seconds_per_byte = plan::bound_seconds(fleet, 1)};
  fleet.summer_bits_per_second.clear();
  by_owners.seconds_per_byte_without_summers = plan::bound_seconds(fleet, 1);
  double all = 0;
  for (const plan::Tensor& tensor : plan.tensors) all += static_cast<double>(tensor.bytes());
  double left = all, schedules = 0;  // bytes that owners sum, and the seconds of all schedules
  const std::vector<ScheduleBytes> bytes = bytes_by_schedule(plan);
  if (std::ranges::none_of(bytes, [](const ScheduleBytes& each) { return each.narrow + each.others > 0; }))
    return by_owners;
  GLN_ASSIGN_OR_RETURN(const topology::Network network, network_of(plan, 0, 0, known));
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!(bytes[i].narrow + bytes[i].others > 0)) continue;
    GLN_ASSIGN_OR_RETURN(const Candidate candidate,
                         candidate_of(network, plan.workers, plan.schedules[i], plan.local_ranks));
    // Partial sums of narrow types have twice their bytes.
    const double of_partial_byte = candidate.cut.has_partial_sums ? candidate.narrow_model.stream_seconds_per_byte -
                                                                        candidate.model.stream_seconds_per_byte
                                                                  : 0;
    schedules += bytes[i].narrow * candidate.narrow_model.stream_seconds_per_byte +
                 bytes[i].others * candidate.model.stream_seconds_per_byte + bytes[i].wider * of_partial_byte;
    left -= bytes[i].narrow + bytes[i].others;
  }
  return StreamBound{(left * by_owners.seconds_per_byte + schedules) / all,
                     (left * by_owners.seconds_per_byte_without_summers + schedules) / all};
}

}  // namespace gleaner::strategy
