#include "common/strategy/choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"

namespace gleaner::strategy {
namespace {

bool is_owner(const plan::Plan& plan, uint32_t member) {
  return plan.members[member].is_here() && !plan.members[member].on_standby;
}

struct Share {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

std::string describe(const std::map<std::string, Share>& shares) {
  return absl::StrCat("strategies: ", absl::StrJoin(shares, "; ", [](std::string* out, const auto& share) {
                        absl::StrAppend(out, counted(share.second.tensors, "tensor"), " of ",
                                        format_bytes(static_cast<double>(share.second.bytes)), " by ", share.first);
                      }));
}

}  // namespace

absl::StatusOr<topology::Topology> network_of(const plan::Plan& plan, double round_trip_seconds) {
  std::vector<topology::Host> hosts;
  std::vector<topology::Link> links;
  for (uint32_t member = 0; member < plan.members.size(); ++member) {
    if (is_owner(plan, member)) hosts.push_back({plan.member_name(member), {}});
  }
  const auto center = static_cast<uint32_t>(hosts.size());
  for (uint32_t member = 0, host = 0; member < plan.members.size(); ++member) {
    if (!is_owner(plan, member)) continue;
    const double bandwidth = plan.members[member].bits_per_second;
    links.push_back({host++, center, bandwidth, bandwidth, round_trip_seconds / 4});  // a round trip has four links
  }
  return topology::Topology::make(std::move(hosts), {{"switch"}}, std::move(links));
}

std::optional<uint32_t> index_of(const plan::ScheduleParameters& parameters, plan::Plan& plan) {
  if (parameters.algorithm == plan::kSummersStrategy) return std::nullopt;
  const auto found = std::ranges::find(plan.schedules, parameters);
  const auto index = static_cast<uint32_t>(found - plan.schedules.begin());
  if (found != plan.schedules.end()) return index;
  if (plan.schedules.size() == plan::kMaxSchedules) return std::nullopt;
  plan.schedules.push_back(parameters);
  return index;
}

std::string choose(plan::Plan& plan, std::vector<plan::Tensor>& tensors, std::span<const Candidate> candidates,
                   const plan::Fleet& fleet) {
  if (tensors.empty()) return "";
  std::map<std::string, Share> shares;
  for (plan::Tensor& tensor : tensors) {
    const auto bytes = static_cast<double>(tensor.bytes());
    const auto partition = static_cast<double>(plan::default_partition_bytes(fleet, tensor.bytes()));
    const Candidate& chosen = candidates[best(candidates, bytes, partition)];
    tensor.schedule = tensor.accumulates ? std::nullopt : index_of(chosen.parameters, plan);
    Share& share =
        shares[tensor.schedule.has_value() ? plan::name_of(plan.schedules[*tensor.schedule]) : plan::kSummersStrategy];
    ++share.tensors;
    share.bytes += tensor.bytes();
  }
  return describe(shares);
}

}  // namespace gleaner::strategy
