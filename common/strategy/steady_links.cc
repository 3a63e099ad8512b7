#include "common/strategy/steady_links.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "common/base/median.h"

namespace gleaner::strategy {
namespace {

constexpr double kSimilar = 1.25;
constexpr double kEqual = 1.1;

bool are_within(double factor, double a, double b) { return a <= factor * b && b <= factor * a; }
bool are_similar(double a, double b) { return are_within(kSimilar, a, b); }

}  // namespace

bool SteadyLinks::on_measured(const std::vector<double>& bits_per_second) {
  ratios_.resize(bits_per_second.size(), 0);
  std::vector<double> known;
  std::ranges::copy_if(bits_per_second, std::back_inserter(known), [](double bits) { return bits > 0; });
  if (known.empty()) return false;
  median_ = upper_median(std::move(known));
  std::vector<double> measured;
  bool has_changed = false;
  for (size_t rank = 0; rank < bits_per_second.size(); ++rank) {
    const double ratio = bits_per_second[rank] / median_;
    measured.push_back(ratio);
    if (ratio == 0 || last_.empty() || !are_similar(ratio, last_[rank])) continue;
    const bool is_one_again = ratios_[rank] != 1 && are_within(kEqual, ratio, 1) && are_within(kEqual, last_[rank], 1);
    if (are_similar(ratio, ratios_[rank]) && !is_one_again) continue;
    ratios_[rank] = are_similar(ratio, 1) ? 1 : ratio;
    has_changed = true;
  }
  last_ = std::move(measured);
  return has_changed;
}

bool SteadyLinks::are_known() const {
  return !ratios_.empty() && std::ranges::all_of(ratios_, [](double ratio) { return ratio > 0; });
}

std::vector<double> SteadyLinks::bits_per_second() const {
  std::vector<double> steady;
  for (const double ratio : ratios_) steady.push_back(ratio * median_);
  return steady;
}

}  // namespace gleaner::strategy
