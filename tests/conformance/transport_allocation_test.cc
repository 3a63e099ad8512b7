// Checks that, after a warm-up, frames cause no allocations, over any transport and in both directions.
#include <gtest/gtest.h>

#include "tests/conformance/rig.h"
#include "tests/unit/engine/allocation_counter.h"

namespace gleaner::transport {
namespace {

using ::gleaner::testing::allocations_so_far;

class Allocations : public ::testing::TestWithParam<TransportKind> {};

TEST_P(Allocations, NonePerFrameOnceWarm) {
  const SystemEnv system(LogOptions{"test", LogLevel::kOff});
  BufferPool pool;
  const auto rig = GetParam().make(system.env(), {});
  uint64_t frames = 0;
  rig->server_end.keep_frames = rig->client_end.keep_frames = false;
  rig->server_end.when_frame = rig->client_end.when_frame = [&](Connection&, const wire::Header&) { ++frames; };
  const auto ends = rig->connected();
  ASSERT_NE(ends.first, nullptr);
  const std::vector<Buffer> payloads = {{}, pool.take(16), pool.take(5000), pool.take(100'000), pool.take(1 << 20)};
  wire::Header header;
  header.type = wire::FrameType::kPush;
  header.job = kJob;
  const auto round = [&] {
    const uint64_t expected = frames + 2 * 20 * payloads.size();
    for (int i = 0; i < 20; ++i) {
      for (const Buffer& payload : payloads) {
        ends.first->send(header, payload);
        ends.second->send(header, payload);
      }
    }
    while (frames < expected) rig->poll_both();
  };
  // Several rounds are needed to warm up: the kernel takes different amounts at a time, so any round may have the
  // longest queue. Once warm, rounds allocate nothing.
  int rounds_without = 0;
  for (int i = 0; i < 200 && rounds_without < 5; ++i) {
    const auto before = allocations_so_far();
    round();
    rounds_without = allocations_so_far().count == before.count ? rounds_without + 1 : 0;
  }
  EXPECT_EQ(rounds_without, 5);
}

INSTANTIATE_TEST_SUITE_P(Transports, Allocations, ::testing::ValuesIn(all_transports()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace gleaner::transport
