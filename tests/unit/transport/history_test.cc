#include "common/transport/any/history.h"

#include <gtest/gtest.h>

namespace gleaner::transport::any {
namespace {

const absl::Status kWhy = absl::UnavailableError("no");

TEST(History, ThreeFailuresInARowDemoteATransportForAMinute) {
  History history;
  for (int i = 0; i < 2; ++i) history.on_failed("p", Kind::kRdma, kWhy, absl::Seconds(i));
  EXPECT_FALSE(history.is_demoted("p", Kind::kRdma, absl::Seconds(2)));
  history.on_failed("p", Kind::kRdma, kWhy, absl::Seconds(2));
  EXPECT_TRUE(history.is_demoted("p", Kind::kRdma, absl::Seconds(61)));
  EXPECT_FALSE(history.is_demoted("p", Kind::kShm, absl::Seconds(3)));
  EXPECT_FALSE(history.is_demoted("another", Kind::kRdma, absl::Seconds(3)));
  EXPECT_FALSE(history.is_demoted("p", Kind::kRdma, absl::Seconds(62)));
  history.on_failed("p", Kind::kRdma, kWhy, absl::Seconds(70));
  EXPECT_TRUE(history.is_demoted("p", Kind::kRdma, absl::Seconds(71))) << "one more failure is enough";
}

TEST(History, ALastingConnectionEndsTheRow) {
  History history;
  for (int i = 0; i < 2; ++i) history.on_broken("p", Kind::kShm, kWhy, absl::Seconds(1), absl::Seconds(i));
  history.on_broken("p", Kind::kShm, kWhy, absl::Seconds(11), absl::Seconds(20));
  history.on_broken("p", Kind::kShm, kWhy, absl::Seconds(1), absl::Seconds(21));
  EXPECT_FALSE(history.is_demoted("p", Kind::kShm, absl::Seconds(22)));
  for (int i = 22; i < 24; ++i) history.on_broken("p", Kind::kShm, kWhy, absl::Seconds(1), absl::Seconds(i));
  EXPECT_TRUE(history.is_demoted("p", Kind::kShm, absl::Seconds(24)));
}

TEST(History, RemembersABoundedNumberOfPeers) {
  History history;
  EXPECT_FALSE(history.used("p").has_value());
  history.use("p", Kind::kTcp);
  EXPECT_EQ(history.used("p"), Kind::kTcp);
  for (int i = 0; i < 5000; ++i) history.use(std::to_string(i), Kind::kShm);
  EXPECT_FALSE(history.used("p").has_value());
}

}  // namespace
}  // namespace gleaner::transport::any
