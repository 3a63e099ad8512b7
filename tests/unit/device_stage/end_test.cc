// Tests of the destructor: it waits for the copies that use pinned memory, but not for ever.
#include "tests/unit/device_stage/rig.h"

namespace gleaner::device {
namespace {

using End = StageOnGpu;

// The copies go on only once the destructor looks after them. Without that it would free memory that they use.
TEST_F(End, WaitsForCopies) {
  Rank& rank = make_rank({tensor_of(3 * kMib)});
  const CUdeviceptr memory = make_tensor(producer, contribution(3 * kMib, 1));
  const Pushed& pushed = rank.start(0, memory, memory, producer);
  double_.hold(to_device(), 1);
  ASSERT_TRUE(run({&rank}, [&] { return pushed.outcome.has_value(); }));
  const CUstream held = to_device();
  watched().on_query = [this, held] { double_.hold(held, 0); };
  rank.end();
  EXPECT_EQ(watched().on_query, nullptr) << "the destructor has not waited";
  EXPECT_EQ(double_.take_findings(), "");
}

TEST_F(End, LeavesMemoryToCopiesThatDoNotEnd) {
  Rank& rank = make_rank({tensor_of(3 * kMib)}, {.drain_timeout = absl::Milliseconds(1)});
  double_.hold(producer, 1);
  const CUdeviceptr memory = make_tensor(producer, contribution(3 * kMib, 1));
  rank.start(0, memory, memory, producer);
  rank.end();
  EXPECT_EQ(double_.take_findings(), "");
  double_.hold(producer, 0);
  caller->synchronize(producer);
  caller->synchronize(to_host());
}

// The driver has queued the copy, but does not tell its end.
TEST_F(End, LeavesMemoryToACopyWhoseEndIsNotSeen) {
  Rank& rank = make_rank({tensor_of(4), tensor_of(4)});
  const CUdeviceptr memory = make_tensor(producer, contribution(4, 1));
  rank.start(0, memory, memory, producer);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == 1; }));
  double_.hold(to_host(), 1);
  double_.hold(producer, 1);
  const CUdeviceptr other = make_tensor(producer, contribution(4, 1));
  const Pushed& pushed = rank.start(1, other, other, producer);
  double_.fail_next("cuLaunchHostFunc", CUDA_ERROR_OUT_OF_MEMORY);
  double_.hold(producer, 0);
  ASSERT_TRUE(run({&rank}, [&] { return !rank.failure().ok(); }));
  EXPECT_THAT(rank.failure(), IsError(absl::StatusCode::kResourceExhausted, "progress"));
  EXPECT_TRUE(pushed.copied->is_recorded());
  rank.end();
  EXPECT_EQ(double_.take_findings(), "");
  double_.hold(to_host(), 0);
  caller->synchronize(producer);
  caller->synchronize(to_host());
}

}  // namespace
}  // namespace gleaner::device
