#include "operator/reconcile/bandwidth.h"

#include <algorithm>
#include <iterator>

namespace gleaner::reconcile {

double member_bits_per_second(const Observed& observed, const PodView& pod) {
  const double node = pod.node.empty() ? 0 : observed.node(pod.node).bits_per_second;
  if (node <= 0) return pod.bits_per_second;
  return pod.bits_per_second <= 0 ? node : std::min(node, pod.bits_per_second);
}

std::vector<double> known_bits_per_second(const Observed& observed, const std::vector<const PodView*>& pods) {
  std::vector<double> bits;
  bits.reserve(pods.size());
  for (const PodView* pod : pods) bits.push_back(pod == nullptr ? 0 : member_bits_per_second(observed, *pod));
  return bits;
}

std::vector<double> assumed_bits_per_second(const Observed& observed, const std::vector<const PodView*>& pods) {
  std::vector<double> bits = known_bits_per_second(observed, pods);
  std::vector<double> known;
  std::copy_if(bits.begin(), bits.end(), std::back_inserter(known), [](double each) { return each > 0; });
  double stand_in = coordinator::kAssumedBitsPerSecond;
  if (!known.empty()) {
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    stand_in = *middle;
  }
  std::replace_if(
      bits.begin(), bits.end(), [](double each) { return each <= 0; }, stand_in);
  return bits;
}

}  // namespace gleaner::reconcile
