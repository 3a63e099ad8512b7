#include "operator/reconcile/bandwidth.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "coordinator/roster/stand_in_bandwidth.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/summers.h"
#include "operator/reconcile/worker_nics.h"

namespace gleaner::reconcile {
namespace {

// A bandwidth that differs from the plan's by a larger share leads to a new plan.
constexpr double kBandwidthChange = 0.2;

const PodView* pod_of(const coordinator::MemberState& member, const std::vector<const PodView*>& workers,
                      const std::vector<const PodView*>& summers) {
  if (member.role != coordinator::Role::kSummer) {
    return member.index < workers.size() ? workers[member.index] : nullptr;
  }
  const auto found =
      std::find_if(summers.begin(), summers.end(), [&](const PodView* pod) { return pod->index == member.index; });
  return found == summers.end() ? nullptr : *found;
}

// Returns the present bandwidth of the member; 0: unknown. For a summer it is at most the spare bandwidth of its
// machine.
double current_bits_per_second(const Observation& observation, const coordinator::MemberState& member,
                               const PodView& pod) {
  double known = member_bits_per_second(observation, pod);
  if (member.role != coordinator::Role::kSummer || !observation.scaling.has_value()) return known;
  for (const auto& [index, spare] : observation.scaling->spare_bits_per_second) {
    if (index == member.index && spare >= 1) known = known > 0 ? std::min(known, spare) : spare;
  }
  return known;
}

}  // namespace

double member_bits_per_second(const Observation& observation, const PodView& pod) {
  const NodeView view = pod.node.empty() ? NodeView{} : find_node(observation, pod.node);
  const std::vector<std::string> devices =
      pod.role == kWorker ? rdma_devices_of(observation.job) : std::vector<std::string>();
  const double node = worker_bits_per_second(devices, view.rdma_speeds, view.bits_per_second);
  if (node <= 0) return pod.bits_per_second;
  return pod.bits_per_second <= 0 ? node : std::min(node, pod.bits_per_second);
}

std::vector<double> known_bits_per_second(const Observation& observation, const std::vector<const PodView*>& pods) {
  std::vector<double> bits;
  bits.reserve(pods.size());
  for (const PodView* pod : pods) bits.push_back(pod == nullptr ? 0 : member_bits_per_second(observation, *pod));
  return bits;
}

std::vector<double> assumed_bits_per_second(const Observation& observation, const std::vector<const PodView*>& pods) {
  std::vector<double> bits = known_bits_per_second(observation, pods);
  std::vector<double> known;
  std::copy_if(bits.begin(), bits.end(), std::back_inserter(known), [](double each) { return each > 0; });
  const double stand_in = coordinator::stand_in_bits_per_second(std::move(known));
  std::replace_if(
      bits.begin(), bits.end(), [](double each) { return each <= 0; }, stand_in);
  return bits;
}

std::vector<MemberBandwidth> changed_bandwidths(const Observation& observation,
                                                const std::vector<const PodView*>& workers) {
  const std::vector<const PodView*> summers = summers_of_attempt(observation);
  std::vector<MemberBandwidth> changed;
  for (const coordinator::MemberState& member : observation.session->members) {
    const PodView* pod = pod_of(member, workers, summers);
    if (pod == nullptr || !pod->alive() || !member.joined || member.bits_per_second <= 0) continue;
    const double known = current_bits_per_second(observation, member, *pod);
    if (known <= 0 || std::abs(known - member.bits_per_second) <= kBandwidthChange * member.bits_per_second) continue;
    changed.push_back({member.role, member.index, known});
  }
  return changed;
}

}  // namespace gleaner::reconcile
