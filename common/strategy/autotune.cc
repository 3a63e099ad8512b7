#include "common/strategy/autotune.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/strategy/masters.h"

namespace gleaner::strategy {
namespace {

constexpr uint32_t kMaxDoublings = 16;

bool is_complete(const Autotune::Measured& measured, size_t ranks) {
  const auto above_zero = [](double value) { return std::isfinite(value) && value > 0; };
  return above_zero(measured.speed) && above_zero(measured.bytes) && measured.bits_per_second.size() == ranks &&
         measured.round_trip_seconds.size() == ranks && std::ranges::all_of(measured.bits_per_second, above_zero);
}

}  // namespace

Autotune::Autotune(collective::Groups groups, collective::MasterCounts counts, AutotuneOptions options)
    : groups_(std::move(groups)), options_(options), group_of_(counts.global.size()), counts_(std::move(counts)) {
  for (uint32_t g = 0; g < groups_.size(); ++g) {
    for (const uint32_t rank : groups_[g]) group_of_[rank] = g;
  }
  chunks_ = std::accumulate(counts_.global.begin(), counts_.global.end(), 0u);
}

std::optional<collective::MasterCounts> Autotune::next_weights(const Measured& measured) {
  if (!is_complete(measured, group_of_.size())) return std::nullopt;
  const bool changed = speed_.has_value() && std::abs(measured.speed / *speed_ - 1) > options_.change;
  speed_ = measured.speed;
  if (changed) {
    tuning_ = true;
    last_blamed_.reset();
    collective::MasterCounts tuned = quicktune(groups_, chunks_, measured.bits_per_second);
    if (tuned.global != counts_.global || tuned.local != counts_.local) {
      counts_ = std::move(tuned);
      speed_.reset();  // the speed with these numbers is no sudden change
      return counts_;
    }
  }
  const Blame found = blame(measured);
  tuning_ = !found.balanced;
  if (found.balanced || !finetune(found.of_rank)) return std::nullopt;
  return counts_;
}

Autotune::Blame Autotune::blame(const Measured& measured) const {
  const std::vector<double> loads = loads_of(counts_, groups_);
  std::vector<double> times;
  for (size_t rank = 0; rank < loads.size(); ++rank) {
    const double bits = loads[rank] * measured.bytes / chunks_ * 8;
    times.push_back(measured.round_trip_seconds[rank] + bits / measured.bits_per_second[rank]);
  }
  const auto [least, most] = std::ranges::minmax(loads);
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  Blame made;
  for (size_t rank = 0; rank < loads.size(); ++rank) {
    const double load = most < options_.balance * least ? 0 : (loads[rank] - least) / (most - least);
    made.of_rank.push_back(options_.load_weight * load + options_.time_weight * times[rank] / mean);
  }
  double highest = 0;
  for (size_t rank = 0; rank < loads.size(); ++rank) {
    if (counts_.local[rank] > 0) highest = std::max(highest, made.of_rank[rank]);
  }
  made.balanced = highest < options_.balance * std::ranges::min(made.of_rank);
  return made;
}

// Moves masterships away from the rank with the highest blame that has some. Returns whether there was one.
bool Autotune::finetune(const std::vector<double>& blame) {
  std::vector<uint32_t> by_blame(blame.size());
  std::iota(by_blame.begin(), by_blame.end(), 0);
  std::ranges::stable_sort(by_blame, [&](uint32_t a, uint32_t b) { return blame[a] > blame[b]; });
  for (const uint32_t from : by_blame) {
    const uint32_t repeats = last_blamed_ == from ? repeats_ + 1 : 0;
    const uint32_t most = 1u << std::min(repeats, kMaxDoublings);
    for (auto to = by_blame.rbegin(); *to != from; ++to) {
      const uint32_t moved = counts_.global[from] > 0 ? move_global(from, *to, most) : move_local(from, *to, most);
      if (moved == 0) continue;
      last_blamed_ = from;
      repeats_ = repeats;
      return true;
    }
  }
  return false;
}

uint32_t Autotune::move_global(uint32_t from, uint32_t to, uint32_t most) {
  const bool same_group = group_of_[from] == group_of_[to];
  // In another group the receiver has to be a local master of the chunk already, and the giver stays one.
  const uint32_t takes = same_group ? most : counts_.local[to] - counts_.global[to];
  const uint32_t moved = std::min({most, counts_.global[from], takes});
  counts_.global[from] -= moved;
  counts_.global[to] += moved;
  if (!same_group) return moved;
  counts_.local[from] -= moved;
  counts_.local[to] += moved;
  return moved;
}

uint32_t Autotune::move_local(uint32_t from, uint32_t to, uint32_t most) {
  if (group_of_[from] != group_of_[to]) return 0;
  const uint32_t moved = std::min(most, counts_.local[from] - counts_.global[from]);
  counts_.local[from] -= moved;
  counts_.local[to] += moved;
  return moved;
}

}  // namespace gleaner::strategy
