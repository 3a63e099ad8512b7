#include "common/strategy/factorizations.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace gleaner::strategy {
namespace {

struct Path {
  double seconds = 0;
  std::vector<uint32_t> factors;
};

std::vector<uint32_t> divisors(uint32_t number) {
  std::vector<uint32_t> small, large;
  for (uint32_t divisor = 1; uint64_t{divisor} * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    small.push_back(divisor);
    if (divisor != number / divisor) large.push_back(number / divisor);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// Keeps the `most` shortest paths. Of equal ones, the path with fewer and then with smaller factors is the shorter one.
void keep_shortest(std::vector<Path>& paths, size_t most) {
  std::ranges::sort(paths, [](const Path& a, const Path& b) {
    return std::tuple(a.seconds, a.factors.size(), a.factors) < std::tuple(b.seconds, b.factors.size(), b.factors);
  });
  if (paths.size() > most) paths.resize(most);
}

}  // namespace

std::vector<std::vector<uint32_t>> best_factorizations(uint32_t ranks, size_t most, const StageSeconds& seconds) {
  const std::vector<uint32_t> products = divisors(ranks);
  std::map<uint32_t, std::vector<Path>> paths = {{1, {Path()}}};  // by the product of their factors
  for (const uint32_t below : products) {
    keep_shortest(paths[below], most);
    for (const uint32_t product : products) {
      if (product <= below || product % below != 0 || (below == 1 && product == ranks)) continue;
      const uint32_t factor = product / below;
      const double more = seconds(below, factor);
      for (const Path& path : paths[below]) {
        paths[product].push_back({path.seconds + more, path.factors});
        paths[product].back().factors.push_back(factor);
      }
    }
  }
  std::vector<std::vector<uint32_t>> best;
  for (Path& path : paths[ranks]) {
    if (path.factors.size() > 1) best.push_back(std::move(path.factors));
  }
  return best;
}

}  // namespace gleaner::strategy
