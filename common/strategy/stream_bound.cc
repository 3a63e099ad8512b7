#include "common/strategy/stream_bound.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/strategy/candidates.h"
#include "common/strategy/choice.h"

namespace gleaner::strategy {
namespace {

// The bytes of the tensors that a schedule sums.
struct Bytes {
  double gradient = 0;
  double moved = 0;  // in the type in which the tensors travel
};

std::vector<Bytes> bytes_by_schedule(const plan::Plan& plan) {
  std::vector<Bytes> bytes(plan.schedules.size());
  for (const plan::Tensor& tensor : plan.tensors) {
    if (!tensor.schedule.has_value()) continue;
    const auto own = static_cast<double>(tensor.bytes());
    bytes[*tensor.schedule].gradient += own;
    bytes[*tensor.schedule].moved += own * plan.push_factor(tensor);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<StreamBound> stream_bound(const plan::Plan& plan, const JobNetwork* known) {
  plan::Fleet fleet = plan::fleet_of(plan);
  StreamBound by_owners{.seconds_per_byte = plan::bound_seconds(fleet, 1)};
  fleet.summer_bits_per_second.clear();
  by_owners.seconds_per_byte_without_summers = plan::bound_seconds(fleet, 1);
  double all = 0;
  for (const plan::Tensor& tensor : plan.tensors) all += static_cast<double>(tensor.bytes());
  double left = all, schedules = 0;  // bytes that owners sum, and the seconds of all schedules
  const std::vector<Bytes> bytes = bytes_by_schedule(plan);
  if (std::ranges::none_of(bytes, [](const Bytes& each) { return each.gradient > 0; })) return by_owners;
  GLN_ASSIGN_OR_RETURN(const topology::Topology network, network_of(plan, 0, known));
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!(bytes[i].gradient > 0)) continue;
    GLN_ASSIGN_OR_RETURN(const Candidate candidate, candidate_of(network, plan.workers, plan.schedules[i]));
    schedules += bytes[i].moved * candidate.model.stream_seconds_per_byte;
    left -= bytes[i].gradient;
  }
  return StreamBound{(left * by_owners.seconds_per_byte + schedules) / all,
                     (left * by_owners.seconds_per_byte_without_summers + schedules) / all};
}

}  // namespace gleaner::strategy
