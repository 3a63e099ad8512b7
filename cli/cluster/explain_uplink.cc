#include "cli/cluster/explain_uplink.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/fabric/network.h"
#include "common/plan/uplinks.h"

namespace gleaner::cli {
namespace {

// Bounds with a smaller relative difference count as equal.
constexpr double kRounding = 1e-9;

}  // namespace

absl::StatusOr<std::optional<BindingUplink>> binding_uplink(const ExplainedJob& job, const fabric::Fabric& fabric) {
  if (job.limit != JobLimit::kSlowestWorker && job.limit != JobLimit::kAllLinks) return std::nullopt;
  std::vector<fabric::Host> hosts;
  std::vector<uint64_t> owned;
  uint32_t workers = 0;
  for (const char* const role : {"worker", "summer"}) {
    for (const ExplainedMachine& machine : job.machines) {
      if (machine.member.role != role) continue;
      hosts.push_back({machine.member.name, machine.member.node, machine.member.bits_per_second});
      owned.push_back(machine.member.owned_bytes);
    }
    if (workers == 0) workers = static_cast<uint32_t>(hosts.size());
  }
  GLN_ASSIGN_OR_RETURN(const topology::Topology network, fabric::network_of(fabric, hosts));
  GLN_ASSIGN_OR_RETURN(const plan::BusiestLink busiest,
                       plan::busiest_link(network, workers, owned, push_ratio_of(job.plan.spec)));
  const topology::Link& link = network.links()[busiest.link];
  const bool is_uplink = !network.is_host(link.a) && !network.is_host(link.b);
  if (!is_uplink || busiest.seconds <= job.seconds * (1 + kRounding)) return std::nullopt;
  return BindingUplink{network.name(link.a), link.bits_per_second, busiest.seconds * link.bits_per_second / 8,
                       busiest.seconds, job.seconds};
}

std::string to_text(const absl::StatusOr<std::optional<BindingUplink>>& uplink) {
  if (!uplink.ok()) return absl::StrCat("Uplink     unknown: ", uplink.status().message(), "\n");
  if (!uplink->has_value()) return "";
  const BindingUplink& binding = **uplink;
  return absl::StrCat("Uplink     ", binding.group, " binds: ", format_bits_per_second(binding.bits_per_second),
                      " carries ", format_bytes(binding.bytes), " of a step, ", format_seconds(binding.seconds),
                      "; without it a step takes ", format_seconds(binding.without_seconds), "\n");
}

nlohmann::json to_json(const absl::StatusOr<std::optional<BindingUplink>>& uplink) {
  if (!uplink.ok()) return {{"error", uplink.status().message()}};
  if (!uplink->has_value()) return nullptr;
  const BindingUplink& binding = **uplink;
  return {{"group", binding.group},
          {"bandwidth", binding.bits_per_second},
          {"bytes", binding.bytes},
          {"seconds", binding.seconds},
          {"without_seconds", binding.without_seconds}};
}

}  // namespace gleaner::cli
