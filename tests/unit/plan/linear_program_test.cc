#include "common/plan/linear_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace gleaner::plan {
namespace {

using testing::DoubleNear;
using testing::Pointwise;

// The dual of the program of Chvátal, "Linear Programming", chapter 2.
LinearProgram textbook() {
  LinearProgram program({5, 11, 8});
  program.add_row({-2, -4, -3}, -5);
  program.add_row({-3, -1, -4}, -4);
  program.add_row({-1, -2, -2}, -3);
  return program;
}

TEST(LinearProgram, HasTheCheapestSolution) {
  LinearProgram program = textbook();
  ASSERT_TRUE(program.minimize().ok());
  EXPECT_NEAR(program.value(), 13, 1e-12);
  EXPECT_THAT(program.solution(), Pointwise(DoubleNear(1e-12), {1, 0, 1}));
  EXPECT_THAT(program.prices(), Pointwise(DoubleNear(1e-12), {2, 0, 1}));
}

// With at most 1/2 of the third variable, the first one makes up for it: 2·1.75 + 1.5 = 5 and 1.75 + 1 < 3, so 2 + 1
// = 3.
TEST(LinearProgram, GoesOnAfterANewRow) {
  LinearProgram program = textbook();
  ASSERT_TRUE(program.minimize().ok());
  program.add_row({0, 0, 1}, 0.5);
  ASSERT_TRUE(program.minimize().ok());
  EXPECT_NEAR(program.value(), 5 * 2 + 8 * 0.5, 1e-12);
}

TEST(LinearProgram, RefusesRowsThatContradict) {
  LinearProgram program = textbook();
  program.add_row({1, 1, 1}, 0.5);
  EXPECT_EQ(program.minimize().code(), absl::StatusCode::kNotFound);
}

TEST(LinearProgram, StopsAboveTheLimitOfTheCost) {
  EXPECT_TRUE(textbook().minimize(13.1).ok());
  EXPECT_EQ(textbook().minimize(12.9).code(), absl::StatusCode::kNotFound);
}

// For y >= 0 with c + yA >= 0 no solution costs less than -y·b, so equal values prove both.
TEST(LinearProgram, PricesProveTheValue) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> number(0, 1);
  for (size_t n = 1; n <= 40; ++n) {
    std::vector<double> costs(n);
    for (double& each : costs) each = number(random);
    LinearProgram program(costs);
    std::vector<std::vector<double>> rows(n / 2 + 1, std::vector<double>(n));
    std::vector<double> limits;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (double& each : rows[i]) each = -number(random);
      limits.push_back(-1 - number(random));
      program.add_row(rows[i], limits.back());
      if (i % 4 != 0) continue;
      ASSERT_TRUE(program.minimize().ok()) << n;
    }
    ASSERT_TRUE(program.minimize().ok()) << n;
    const std::vector<double> prices = program.prices(), solution = program.solution();
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_LE(std::inner_product(rows[i].begin(), rows[i].end(), solution.begin(), 0.0), limits[i] + 1e-9);
    }
    for (size_t j = 0; j < n; ++j) {
      double reduced = costs[j];
      for (size_t i = 0; i < rows.size(); ++i) reduced += prices[i] * rows[i][j];
      EXPECT_GE(reduced, -1e-9);
    }
    EXPECT_NEAR(program.value(), -std::inner_product(prices.begin(), prices.end(), limits.begin(), 0.0), 1e-9);
    EXPECT_NEAR(std::inner_product(costs.begin(), costs.end(), solution.begin(), 0.0), program.value(), 1e-9);
  }
}

}  // namespace
}  // namespace gleaner::plan
