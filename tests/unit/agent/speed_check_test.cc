// Tests of SpeedCheck, which detects NICs that are faster than their claimed speed.
#include "agent/spare/speed_check.h"

#include <gmock/gmock.h>

namespace gleaner::spare {
namespace {

using api::SpeedSource;

class Nic {
 public:
  Nic(double claim, SpeedSource by) {
    sample_.claimed_bits_per_second = claim;
    sample_.claimed_by = by;
    sample_.traffic = Traffic{};
    check_.update(sample_);
  }
  CheckedSpeed run(int seconds, double received_bits, double sent_bits) {
    CheckedSpeed speed;
    for (int i = 0; i < seconds; ++i) {
      sample_.at += absl::Seconds(1);
      sample_.traffic->received_bytes += received_bits / 8;
      sample_.traffic->sent_bytes += sent_bits / 8;
      speed = check_.update(sample_);
    }
    return speed;
  }
  Sample& sample() { return sample_; }

 private:
  SpeedCheck check_;
  Sample sample_;
};

TEST(SpeedCheck, HonestNicKeepsItsClaim) {
  Nic nic(1e9, SpeedSource::kSysfs);
  const CheckedSpeed speed = nic.run(60, 1.02e9, 1e9);
  EXPECT_FALSE(speed.contradicted);
  EXPECT_EQ(speed.bits_per_second, 1e9);
  EXPECT_EQ(speed.source, SpeedSource::kSysfs);
}

TEST(SpeedCheck, TrafficInEitherDirectionContradictsAClaim) {
  for (const auto& [received, sent] : {std::pair{2e9, 0.0}, {0.0, 2e9}}) {
    Nic nic(1e9, SpeedSource::kLabel);
    const CheckedSpeed speed = nic.run(10, received, sent);
    EXPECT_TRUE(speed.contradicted);
    EXPECT_NEAR(speed.bits_per_second, 2e9, 1);
    EXPECT_EQ(speed.claimed_bits_per_second, 1e9);
    EXPECT_EQ(speed.source, SpeedSource::kMeasured);
  }
}

TEST(SpeedCheck, CountersThatJumpDoNotContradictAClaim) {
  Nic nic(1e9, SpeedSource::kSysfs);
  for (int i = 0; i < 20; ++i) {  // a driver that updates its counters every other second
    EXPECT_FALSE(nic.run(1, 2e9, 0).contradicted);
    EXPECT_FALSE(nic.run(1, 0, 0).contradicted) << i;
  }
}

TEST(SpeedCheck, StaysUntilTheClaimChanges) {
  Nic nic(1e9, SpeedSource::kLabel);
  EXPECT_TRUE(nic.run(10, 3e9, 0).contradicted);
  EXPECT_TRUE(nic.run(600, 0, 0).contradicted);
  EXPECT_NEAR(nic.run(10, 4e9, 0).bits_per_second, 4e9, 1) << "the measured speed grows with the traffic";
  nic.sample().claimed_bits_per_second = 10e9;
  const CheckedSpeed speed = nic.run(10, 4e9, 0);
  EXPECT_FALSE(speed.contradicted);
  EXPECT_EQ(speed.bits_per_second, 10e9);
}

TEST(SpeedCheck, EarlierTrafficDoesNotContradictALowerClaim) {
  Nic nic(10e9, SpeedSource::kSysfs);
  nic.run(14, 8e9, 8e9);
  nic.sample().claimed_bits_per_second = 1e9;  // in the middle of a window
  const CheckedSpeed speed = nic.run(40, 0.5e9, 0.5e9);
  EXPECT_FALSE(speed.contradicted);
  EXPECT_EQ(speed.bits_per_second, 1e9);
}

TEST(SpeedCheck, TrafficAboveAMeasuredSpeedIsNoContradiction) {
  Nic nic(1e9, SpeedSource::kMeasured);
  const CheckedSpeed speed = nic.run(10, 3e9, 0);
  EXPECT_FALSE(speed.contradicted);
  EXPECT_NEAR(speed.bits_per_second, 3e9, 1);
}

TEST(SpeedCheck, UnknownSpeedStaysUnknown) {
  Nic nic(0, SpeedSource::kUnknown);
  const CheckedSpeed speed = nic.run(30, 3e9, 0);
  EXPECT_EQ(speed.bits_per_second, 0);
  EXPECT_EQ(speed.source, SpeedSource::kUnknown);
  EXPECT_FALSE(speed.contradicted);
}

TEST(SpeedCheck, ResetCountersDoNotContradictAClaim) {
  Nic nic(1e9, SpeedSource::kSysfs);
  nic.run(10, 1e9, 1e9);
  nic.sample().traffic = Traffic{};
  EXPECT_FALSE(nic.run(5, 0.9e9, 0).contradicted);
}

}  // namespace
}  // namespace gleaner::spare
