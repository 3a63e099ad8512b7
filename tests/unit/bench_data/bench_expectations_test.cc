// Tests which strategies ranks may expect, and the error if one is not met.
#include "cli/bench/expectations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string message_of(const absl::Status& status) { return std::string(status.message()); }

TEST(BenchExpectationsTest, RanksMayExpectSummersOrAnyAlgorithm) {
  EXPECT_THAT(expected_strategies(), AllOf(Contains("summers"), Contains("ring"), Contains("two-level")));
  EXPECT_THAT(expected_strategies(), Not(Contains("auto")));
}

TEST(BenchExpectationsTest, ExpectationsThatAreMetPass) {
  const float ring = number_of("ring"), any = number_of("");
  EXPECT_TRUE(check_expectations(std::vector{ring, any, ring}, 1, "w", "ring").ok());
}

TEST(BenchExpectationsTest, EveryStrategyHasItsOwnNumber) {
  for (const std::string& strategy : expected_strategies()) {
    for (const std::string& other : expected_strategies()) {
      const std::vector numbers{number_of(strategy)};
      EXPECT_EQ(check_expectations(numbers, 1, "w", other).ok(), strategy == other) << strategy << " and " << other;
    }
  }
}

TEST(BenchExpectationsTest, ErrorNamesBothSides) {
  const std::vector numbers{number_of("ring"), number_of("summers"), number_of("bcube"), number_of("")};
  const absl::Status status = check_expectations(numbers, 1, "w", "ring");
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(message_of(status),
              HasSubstr("tensor 'w' summed by ring, but worker 1 expects summers, worker 2 expects bcube;"));
}

TEST(BenchExpectationsTest, ErrorNamesLocalRanks) {
  const std::vector numbers{number_of("ring"), number_of("ring"), number_of("ring"), number_of("racks")};
  EXPECT_THAT(message_of(check_expectations(numbers, 2, "w", "ring")),
              HasSubstr("but worker 1 (local rank 1) expects racks;"));
}

}  // namespace
}  // namespace gleaner::cli
