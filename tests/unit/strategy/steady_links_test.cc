#include "common/strategy/steady_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::strategy {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

TEST(SteadyLinks, TwoMeasurementsMustAgree) {
  SteadyLinks links;
  links.on_measured({5.1, 4.8, 5.0});
  EXPECT_FALSE(links.are_known());
  EXPECT_TRUE(links.on_measured({5.0, 5.2, 4.9}));
  EXPECT_TRUE(links.are_known());
  EXPECT_THAT(links.bits_per_second(), ElementsAre(5, 5, 5));
  EXPECT_FALSE(links.on_measured({5.0, 3.0, 5.0})) << "it falls";
  EXPECT_FALSE(links.on_measured({5.0, 2.0, 5.0})) << "and differs from the last one";
  EXPECT_TRUE(links.on_measured({5.0, 2.1, 5.0}));
  EXPECT_THAT(links.ratios(), ElementsAre(1, DoubleNear(0.42, 1e-9), 1));
  links.on_measured({5.0, 5.0, 4.7});
  EXPECT_TRUE(links.on_measured({5.0, 4.3, 4.7}));
  EXPECT_THAT(links.ratios(), ElementsAre(1, 1, 1));
}

TEST(SteadyLinks, ASingleMeasurementIsNoise) {
  SteadyLinks links;
  links.on_measured({5, 2, 5});
  links.on_measured({5, 2, 5});
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(links.on_measured({5, i % 2 == 0 ? 3.0 : 2.2, 5}));
  }
  EXPECT_THAT(links.ratios(), ElementsAre(1, 0.4, 1));
}

TEST(SteadyLinks, AnUnknownBandwidthChangesNothing) {
  SteadyLinks links;
  EXPECT_FALSE(links.on_measured({0, 0, 0}));
  for (int i = 0; i < 3; ++i) links.on_measured({5, 0, 5});
  EXPECT_FALSE(links.are_known());
  for (int i = 0; i < 2; ++i) links.on_measured({5, 2, 5});
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(links.on_measured({6, 0, 6}));
  EXPECT_THAT(links.bits_per_second(), ElementsAre(6, DoubleNear(2.4, 1e-9), 6));
  EXPECT_FALSE(links.on_measured({6, 6, 6})) << "the first one since then";
}

TEST(SteadyLinks, ARatioNearOneBecomesOneAgain) {
  SteadyLinks links;
  for (int i = 0; i < 2; ++i) links.on_measured({5, 3.9, 5});
  EXPECT_THAT(links.ratios(), ElementsAre(1, DoubleNear(0.78, 1e-9), 1));
  EXPECT_FALSE(links.on_measured({5, 4.8, 5}));
  EXPECT_TRUE(links.on_measured({5, 4.7, 5}));
  EXPECT_THAT(links.ratios(), ElementsAre(1, 1, 1));
}

}  // namespace
}  // namespace gleaner::strategy
