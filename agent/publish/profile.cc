#include "agent/publish/profile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "agent/publish/nvml_report.h"
#include "common/base/units.h"

namespace gleaner::publish {
namespace {

using api::Condition;
using api::NodeProfileStatus;

// Shares of the machine's resources. A change above kNoticeable counts. If few resources are spare, a smaller change
// also counts, since it decides whether a summer still fits; changes below kNoise never count.
constexpr double kNoticeable = 0.1;
constexpr double kNoise = 0.01;

Condition ready_condition(const discover::Machine& machine, const spare::Estimate& estimate) {
  Condition condition{.type = "Ready", .status = estimate.measured};
  if (!estimate.measured) {
    condition.reason = "NotMeasured";
    condition.message = "the use of this machine's CPUs is not known yet, so no resource counts as spare";
  } else if (std::string trouble = nvml_trouble(machine); !trouble.empty()) {
    condition.reason = machine.without_nvml.empty() ? "NvmlFailures" : "WithoutNvml";
    condition.message = std::move(trouble);
  } else {
    condition.reason = "Measured";
    condition.message = "the agent measures this machine";
  }
  return condition;
}

Condition speed_condition(const spare::Estimate& estimate, const probe::Speed& speed) {
  if (estimate.speed.contradicted) {
    return {.type = "SpeedKnown",
            .status = false,
            .reason = "FasterThanClaimed",
            .message = absl::StrCat(speed.message, ", but ", format_bits_per_second(estimate.speed.bits_per_second),
                                    " were measured: the claim is not used until it changes")};
  }
  return {.type = "SpeedKnown",
          .status = estimate.speed.bits_per_second > 0,
          .reason = speed.reason,
          .message = speed.message};
}

bool same_conditions(const std::vector<Condition>& a, const std::vector<Condition>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Condition& x, const Condition& y) {
    return x.type == y.type && x.status == y.status && x.reason == y.reason;
  });
}

bool far_apart(double a, double b, double whole) {
  const double apart = std::abs(a - b);
  return apart > kNoticeable * whole || (apart > kNoise * whole && 2 * std::min(a, b) < std::max(a, b));
}

// Returns whether two round trips differ by more than a quarter of the shorter one, and by more than 5 us: a repeated
// measurement mostly differs by less.
bool far_apart(absl::Duration a, absl::Duration b) {
  const absl::Duration apart = absl::AbsDuration(a - b);
  return apart > std::min(a, b) / 4 && apart > absl::Microseconds(5);
}

bool same_peers(const std::vector<api::PeerLatency>& a, const std::vector<api::PeerLatency>& b) {
  absl::flat_hash_map<absl::string_view, absl::Duration> round_trips;
  for (const api::PeerLatency& peer : a) round_trips[peer.node] = peer.round_trip;
  return a.size() == b.size() && std::ranges::all_of(b, [&](const api::PeerLatency& peer) {
           const auto found = round_trips.find(peer.node);
           return found != round_trips.end() && !far_apart(found->second, peer.round_trip);
         });
}

// Returns whether the bandwidths are those of the same nodes and none differs by more than a tenth.
bool same_bandwidths(const std::vector<api::PeerBandwidth>& a, const std::vector<api::PeerBandwidth>& b) {
  return std::ranges::equal(a, b, [](const api::PeerBandwidth& before, const api::PeerBandwidth& now) {
    return before.node == now.node && std::abs(before.bits_per_second - now.bits_per_second) <=
                                          kNoticeable * std::max(before.bits_per_second, now.bits_per_second);
  });
}

}  // namespace

NodeProfileStatus make_status(const discover::Machine& machine, const spare::Estimate& estimate,
                              const probe::Speed& speed, const std::string& version,
                              const std::vector<Condition>& before, absl::Time now) {
  NodeProfileStatus status;
  status.observed_time = now;
  status.agent_version = version;
  status.cpus = machine.processors.cpus;
  status.memory_bytes = machine.processors.memory_bytes;
  status.numa_nodes = machine.processors.numa_nodes;
  status.nics = machine.nics;
  status.gpus = machine.gpus;
  status.nvlinks = machine.nvlinks;
  status.paths = machine.paths;
  status.bits_per_second = estimate.speed.bits_per_second;
  status.speed_source = estimate.speed.source;
  for (api::Nic& nic : status.nics) {
    if (!nic.default_route) continue;
    nic.bits_per_second = status.bits_per_second;
    nic.speed_source = status.speed_source;
  }
  status.used_cpus = estimate.used_cpus + estimate.summers_cpus;
  status.used_bits_per_second = estimate.used_bits_per_second + estimate.summers_bits_per_second;
  status.cpu_pressure = estimate.cpu_pressure;
  status.spare = estimate.spare;
  status.conditions = before;
  api::set_condition(status.conditions, ready_condition(machine, estimate), now);
  api::set_condition(status.conditions, speed_condition(estimate, speed), now);
  return status;
}

bool differs_noticeably(const NodeProfileStatus& published, const NodeProfileStatus& now) {
  if (published.agent_version != now.agent_version || published.cpus != now.cpus ||
      published.memory_bytes != now.memory_bytes || published.numa_nodes != now.numa_nodes ||
      published.nics != now.nics || published.gpus != now.gpus || published.nvlinks != now.nvlinks ||
      published.paths != now.paths || published.bits_per_second != now.bits_per_second ||
      published.speed_source != now.speed_source || !same_peers(published.peers, now.peers) ||
      !same_bandwidths(published.peer_bandwidths, now.peer_bandwidths) ||
      !same_conditions(published.conditions, now.conditions)) {
    return true;
  }
  return far_apart(published.spare.cpus, now.spare.cpus, now.cpus) ||
         far_apart(static_cast<double>(published.spare.memory_bytes), static_cast<double>(now.spare.memory_bytes),
                   static_cast<double>(now.memory_bytes)) ||
         far_apart(published.spare.bits_per_second, now.spare.bits_per_second, now.bits_per_second);
}

}  // namespace gleaner::publish
