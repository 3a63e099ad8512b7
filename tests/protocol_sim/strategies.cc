#include "tests/protocol_sim/strategies.h"

#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "common/collective/algorithms.h"

namespace gleaner::sim {
namespace {

// Returns a random factor of `number` that is at least `least`.
uint32_t draw_factor(uint32_t number, uint32_t least, Dice& dice) {
  std::vector<uint32_t> factors;
  for (uint32_t factor = least; factor <= number; ++factor) {
    if (number % factor == 0) factors.push_back(factor);
  }
  return factors[dice.below(factors.size())];
}

// Returns two factors of `number` whose product is `number`.
std::vector<uint32_t> draw_groups(uint32_t number, Dice& dice) {
  const uint32_t groups = draw_factor(number, 1, dice);
  return {groups, number / groups};
}

std::vector<uint32_t> draw_factors(uint32_t number, Dice& dice) {
  std::vector<uint32_t> stages;
  for (; number > 1; number /= stages.back()) stages.push_back(draw_factor(number, 2, dice));
  return stages;
}

}  // namespace

collective::Spec draw_schedule(uint32_t workers, Dice& dice) {
  const std::span<const absl::string_view> all = collective::algorithms();
  collective::Spec drawn;
  do {
    drawn = {.algorithm = std::string(all[dice.below(all.size())])};
    const bool has_defaults = dice.chance(0.5);
    if (drawn.algorithm == "racks" || (drawn.algorithm == "two-level" && !has_defaults)) {
      drawn.factors = draw_groups(workers, dice);
    }
    if (drawn.algorithm == "blueconnect" && !has_defaults) drawn.factors = draw_factors(workers, dice);
    if (drawn.algorithm == "bcube" && workers > 1 && !has_defaults) drawn.radix = workers;
  } while (!collective::make_schedule(drawn, workers).ok());
  if (dice.chance(0.5)) return drawn;
  drawn.rank_of.resize(workers);
  std::iota(drawn.rank_of.begin(), drawn.rank_of.end(), 0);
  dice.shuffle(drawn.rank_of);
  return drawn;
}

strategy::Strategy draw_strategy(uint32_t workers, Dice& dice) {
  if (dice.chance(0.55)) return strategy::Summers();
  if (dice.chance(0.45)) return strategy::Auto();
  return draw_schedule(workers, dice);
}

bool tunes_masters(const coordinator::Options& job) {
  const collective::Spec* const schedule = schedule_of(job.reduction.strategy);
  return job.workers > 2 && schedule != nullptr && schedule->algorithm == "two-level";
}

}  // namespace gleaner::sim
