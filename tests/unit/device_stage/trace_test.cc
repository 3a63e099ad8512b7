// Tests that a trace has the begin and the end of each copy, in order.
#include "common/trace/recorder.h"

#include "tests/unit/device_stage/rig.h"

namespace gleaner::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using trace::Kind;

// Counts its reads, of which the recorder makes one for each event.
struct CountingClock : Clock {
  absl::Duration since_start() const override { return absl::Nanoseconds(++reads); }
  absl::Time now() const override { return absl::UnixEpoch(); }
  mutable int64_t reads = 0;
};

class Traced : public StageOnGpu {
 protected:
  void push_pull(Rank& rank, uint32_t tensor, size_t bytes, int64_t events) {
    const CUdeviceptr memory = make_tensor(producer, contribution(bytes, tensor));
    rank.start(tensor, memory, memory, producer);
    ASSERT_TRUE(run({&rank}, [&] { return rank.is_idle() && clock_.reads >= events; }));
  }
  CountingClock clock_;
  trace::Recorder recorder_{&clock_};
};

TEST_F(Traced, HasBeginAndEndOfEachCopyInOrder) {
  recorder_.start();
  Rank& rank = make_rank({tensor_of(kMib), tensor_of(2 * kMib)}, {}, &recorder_);
  push_pull(rank, 0, kMib, 5);
  push_pull(rank, 1, 2 * kMib, 5 + 9);
  const std::vector<trace::Event> events = recorder_.take().events;
  ASSERT_EQ(events.size(), 5u + 9u);
  const uint32_t second = kPiece / kPartition;  // the first partition of the second piece
  for (const auto& [tensor, piece] : {std::pair(0u, 0u), std::pair(1u, 0u), std::pair(1u, second)}) {
    std::vector<Kind> kinds;
    for (const trace::Event& event : events) {
      if (event.tensor != tensor || event.partition != piece) continue;
      kinds.push_back(event.kind);
      EXPECT_EQ(event.step, tensor) << "the number of the push_pull";
      EXPECT_EQ(event.bytes, kPiece);
    }
    if (piece == 0) {
      ASSERT_THAT(kinds, ::testing::Not(IsEmpty()));
      EXPECT_EQ(kinds.front(), Kind::kProduced);
      kinds.erase(kinds.begin());
    }
    EXPECT_THAT(kinds, ElementsAre(Kind::kCopyOutBegun, Kind::kCopyOutEnded, Kind::kCopyInBegun, Kind::kCopyInEnded));
  }
}

TEST_F(Traced, CopyToTheHostEndsWhenItsStreamHasCopied) {
  recorder_.start();
  Rank& rank = make_rank({tensor_of(kMib)}, {}, &recorder_);
  push_pull(rank, 0, kMib, 5);  // opens the GPU
  double_.hold(to_host(), 1);
  const CUdeviceptr memory = make_tensor(producer, contribution(kMib, 0));
  rank.start(0, memory, memory, producer);
  ASSERT_TRUE(run({&rank}, [&] { return clock_.reads == 7; }));
  for (int i = 0; i < 20; ++i) rank.poll();
  EXPECT_EQ(clock_.reads, 7) << "kProduced and kCopyOutBegun";
  double_.hold(to_host(), 0);
  ASSERT_TRUE(run({&rank}, [&] { return clock_.reads == 10; }));
}

TEST_F(Traced, NothingIsRecordedWithoutTrace) {
  Rank& rank = make_rank({tensor_of(kMib)}, {}, &recorder_);
  push_pull(rank, 0, kMib, 0);
  EXPECT_EQ(clock_.reads, 0);
  EXPECT_THAT(recorder_.take().events, IsEmpty());
}

}  // namespace
}  // namespace gleaner::device
