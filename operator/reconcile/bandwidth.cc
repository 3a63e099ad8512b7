#include "operator/reconcile/bandwidth.h"

#include <algorithm>

namespace gleaner::reconcile {

double member_bits_per_second(const Observed& observed, const PodView& pod) {
  const double node = pod.node.empty() ? 0 : observed.node(pod.node).bits_per_second;
  if (node <= 0) return pod.bits_per_second;
  return pod.bits_per_second <= 0 ? node : std::min(node, pod.bits_per_second);
}

std::vector<double> assumed_bits_per_second(const Observed& observed, const std::vector<const PodView*>& pods) {
  std::vector<double> bits;
  bits.reserve(pods.size());
  for (const PodView* pod : pods) {
    const double known = pod == nullptr ? 0 : member_bits_per_second(observed, *pod);
    bits.push_back(known > 0 ? known : coordinator::kAssumedBitsPerSecond);
  }
  return bits;
}

}  // namespace gleaner::reconcile
