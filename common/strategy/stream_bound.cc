#include "common/strategy/stream_bound.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/strategy/candidates.h"
#include "common/strategy/choice.h"

namespace gleaner::strategy {
namespace {

// The bytes of the tensors that a schedule sums, as they travel.
struct ScheduleBytes {
  double contributions = 0;
  double partial_sums = 0;
  double results = 0;
};

std::vector<ScheduleBytes> bytes_by_schedule(const plan::Plan& plan) {
  std::vector<ScheduleBytes> bytes(plan.schedules.size());
  for (const plan::Tensor& tensor : plan.tensors) {
    if (!tensor.schedule.has_value()) continue;
    ScheduleBytes& of_schedule = bytes[*tensor.schedule];
    const plan::Encoding types = plan.encoding(tensor);
    of_schedule.contributions += static_cast<double>(types.contribution_bytes(tensor.bytes()));
    of_schedule.partial_sums += static_cast<double>(types.partial_bytes(tensor.bytes()));
    of_schedule.results += static_cast<double>(tensor.bytes());
  }
  return bytes;
}

double seconds_of(const Candidate& candidate, const ScheduleBytes& bytes) {
  const double of_byte = candidate.model.stream_seconds_per_byte;
  if (!candidate.cut.has_partial_sums) return bytes.contributions * of_byte;  // an all-gather
  // Partial sums of narrow types have twice the bytes of results.
  const double of_partial_byte = candidate.narrow_model.stream_seconds_per_byte - of_byte;
  return bytes.results * of_byte + (bytes.partial_sums - bytes.results) * of_partial_byte;
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
  if (std::ranges::none_of(bytes, [](const ScheduleBytes& each) { return each.results > 0; })) return by_owners;
  GLN_ASSIGN_OR_RETURN(const topology::Network network, network_of(plan, 0, 0, known));
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!(bytes[i].results > 0)) continue;
    GLN_ASSIGN_OR_RETURN(const Candidate candidate, candidate_of(network, plan.workers, plan.schedules[i]));
    schedules += seconds_of(candidate, bytes[i]);
    left -= bytes[i].results;
  }
  return StreamBound{(left * by_owners.seconds_per_byte + schedules) / all,
                     (left * by_owners.seconds_per_byte_without_summers + schedules) / all};
}

}  // namespace gleaner::strategy
