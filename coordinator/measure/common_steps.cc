#include "coordinator/measure/common_steps.h"

#include <algorithm>

namespace gleaner::coordinator {

bool CommonSteps::add(size_t rank, uint64_t number, const RankTotals& totals) {
  Points& points = points_[rank];
  if (!points.empty() && number <= points.rbegin()->first) return false;
  if (points.size() >= kMostKept) restart();
  points[number] = totals;
  return ++reports_[number] == points_.size();
}

void CommonSteps::restart() {
  for (Points& points : points_) points.clear();
  reports_.clear();
  last_number_.reset();
}

std::optional<uint64_t> CommonSteps::reached() const {
  if (!last_number_.has_value()) return std::nullopt;
  const auto last = [](const Points& points) { return points.rbegin()->first; };
  const uint64_t number = last(*std::ranges::min_element(points_, {}, last));
  return number > *last_number_ ? std::optional(number) : std::nullopt;
}

RankTotals CommonSteps::at(const Points& points, uint64_t number) {
  const auto after = points.lower_bound(number);
  if (after->first == number) return after->second;
  const auto before = std::prev(after);
  const double part = static_cast<double>(number - before->first) / static_cast<double>(after->first - before->first);
  RankTotals totals = after->second;
  for (double RankTotals::*const field :
       {&RankTotals::steps, &RankTotals::bytes, &RankTotals::step_bytes, &RankTotals::saved_bytes,
        &RankTotals::bytes_of_unknown_bound, &RankTotals::seconds, &RankTotals::bound_seconds,
        &RankTotals::bound_seconds_without_summers}) {
    totals.*field = before->second.*field + part * (after->second.*field - before->second.*field);
  }
  return totals;
}

std::vector<RankSteps> CommonSteps::advance(uint64_t number) {
  std::vector<RankSteps> steps;
  for (Points& points : points_) {
    const RankTotals here = at(points, number);
    if (last_number_.has_value()) {
      const RankTotals& before = points.begin()->second;
      steps.push_back(
          {here.steps - before.steps, here.seconds - before.seconds, here.bound_seconds - before.bound_seconds});
    }
    points.erase(points.begin(), points.upper_bound(number));
    points.emplace(number, here);
  }
  reports_.erase(reports_.begin(), reports_.upper_bound(number));
  last_number_ = number;
  return steps;
}

}  // namespace gleaner::coordinator
