#include "common/strategy/stream_bound.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/plan/uplinks.h"
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

// Returns the bound of owners in the network of the job, with the first `summers` CPU summers.
absl::StatusOr<double> owners_in_network(const plan::Plan& plan, const topology::Topology& network, uint32_t summers) {
  const double push_ratio = plan::fleet_of(plan).push_ratio;
  GLN_ASSIGN_OR_RETURN(const plan::LinkLoads loads, plan::link_loads(network, plan.workers, summers));
  if (loads.tree() == nullptr) return 0;
  GLN_ASSIGN_OR_RETURN(const plan::UplinkBound bound,
                       plan::bound_with_uplinks(network, loads, plan.workers, summers, 1, push_ratio));
  return bound.seconds;
}

absl::StatusOr<StreamBound> bound_of_owners(const plan::Plan& plan, const JobNetwork* known,
                                            std::span<const uint32_t> summers_at) {
  plan::Fleet fleet = plan::fleet_of(plan);
  StreamBound bound{.seconds_per_byte = plan::bound_seconds(fleet, 1)};
  fleet.summer_bits_per_second.clear();
  bound.seconds_per_byte_without_summers = plan::bound_seconds(fleet, 1);
  if (known == nullptr || plan.workers < 2) return bound;
  GLN_ASSIGN_OR_RETURN(const topology::Topology network, topology_of(plan, *known, summers_at));
  if (network.switches().size() < 2) return bound;
  GLN_ASSIGN_OR_RETURN(const double with, owners_in_network(plan, network, network.host_count() - plan.workers));
  GLN_ASSIGN_OR_RETURN(const double without, owners_in_network(plan, network, 0));
  bound.seconds_per_byte = std::max(bound.seconds_per_byte, with);
  bound.seconds_per_byte_without_summers = std::max(bound.seconds_per_byte_without_summers, without);
  return bound;
}

}  // namespace

absl::StatusOr<StreamBound> stream_bound(const plan::Plan& plan, const JobNetwork* known,
                                         std::span<const uint32_t> summers_at) {
  for (const plan::Tensor& tensor : plan.tensors) {
    if (tensor.group.empty()) continue;
    return absl::UnimplementedError(
        absl::StrCat("tensor '", tensor.name, "' is summed by a group of workers; such sums have no bound here"));
  }
  GLN_ASSIGN_OR_RETURN(const StreamBound by_owners, bound_of_owners(plan, known, summers_at));
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
