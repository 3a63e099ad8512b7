#include "common/scavenger/peer_delays.h"

#include <gtest/gtest.h>

namespace gleaner::scavenger {
namespace {

using absl::Microseconds;
using absl::Milliseconds;

TEST(PeerDelays, IsTheMeanOverThePeersThatWereMeasuredLately) {
  PeerDelays delays;
  EXPECT_EQ(delays.mean({}), std::nullopt);
  delays.update(1, Milliseconds(0), Microseconds(100));
  delays.update(2, Milliseconds(0), Microseconds(300));
  EXPECT_EQ(delays.mean(Milliseconds(1)), absl::ZeroDuration());
  delays.update(1, Milliseconds(5), Microseconds(1100));
  delays.update(2, Milliseconds(5), Microseconds(3300));
  EXPECT_EQ(delays.mean(Milliseconds(5)), Milliseconds(2));
  delays.update(2, Milliseconds(300), Microseconds(800));
  EXPECT_EQ(delays.mean(Milliseconds(300)), Microseconds(500));
  delays.update(2, Milliseconds(301), absl::ZeroDuration());
  EXPECT_EQ(delays.mean(Milliseconds(301)), Microseconds(500)) << "zero is no measurement";
  delays.remove(2);
  EXPECT_EQ(delays.mean(Milliseconds(301)), std::nullopt);
}

TEST(PeerDelays, AFrameCarriesThem) {
  for (const absl::Duration delay : {Microseconds(0), Microseconds(1), absl::Seconds(10), absl::Minutes(71)}) {
    EXPECT_EQ(decode_delay(encode_delay(delay)), delay);
  }
  EXPECT_EQ(encode_delay(std::nullopt), 0u);
  EXPECT_EQ(decode_delay(0), std::nullopt);
  EXPECT_EQ(encode_delay(-absl::Seconds(1)), 1u);
  EXPECT_EQ(encode_delay(absl::Hours(100)), UINT32_MAX);
}

}  // namespace
}  // namespace gleaner::scavenger
