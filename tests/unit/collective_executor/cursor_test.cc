#include "comm-lib/collective/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

using ::testing::ElementsAre;

// Rank 0 sends its two chunks to rank 1, adds the vectors of ranks 1 and 2, in this order, and gets chunk 0 of rank 2.
Schedule gather() {
  ScheduleBuilder builder("gather", 3, 2);
  builder.transfer(0, 1, {0, 1}, OpKind::kReceiveCopy);
  builder.transfer(0, 1, {1, 1}, OpKind::kReceiveCopy);
  builder.end_step();
  builder.transfer(1, 0, {0, 2}, OpKind::kReceiveReduce);
  builder.transfer(2, 0, {0, 2}, OpKind::kReceiveReduce);
  builder.end_step();
  builder.transfer(2, 0, {0, 1}, OpKind::kReceiveCopy);
  builder.end_step();
  return builder.take();
}

class CursorTest : public ::testing::Test {
 protected:
  Buffer make(const std::vector<float>& values) {
    Buffer buffer = pool_.take(4 * values.size());
    std::memcpy(buffer.bytes().data(), values.data(), buffer.size());
    return buffer;
  }
  std::vector<float> work() const {
    std::vector<float> values(cursor_.elements());
    std::memcpy(values.data(), cursor_.work().bytes().data(), 4 * values.size());
    return values;
  }
  // Expects this event after any number of receives.
  void expect(Cursor::Event event, uint32_t peer) {
    Cursor::Outcome outcome = cursor_.advance(kernels_);
    while (outcome.event == Cursor::Event::kReceived) outcome = cursor_.advance(kernels_);
    EXPECT_EQ(outcome.event, event);
    EXPECT_EQ(outcome.operation == nullptr ? 0 : outcome.operation->peer, peer);
  }

  const Program program_{gather(), {}, 0};
  kernels::Kernels kernels_ = *kernels::Kernels::choose("");
  BufferPool pool_;
  ArrivedSlices arrived_;
  Cursor cursor_;
};

TEST_F(CursorTest, ExecutesInProgramOrder) {
  cursor_.open(&program_, 2, DataType::kFloat32, &arrived_);
  cursor_.add(1, make({3, 3}));
  EXPECT_FALSE(cursor_.has_begun());
  cursor_.begin(make({1e8f, 1}));
  expect(Cursor::Event::kSend, 1);
  expect(Cursor::Event::kSend, 1);
  expect(Cursor::Event::kBlocked, 1);
  EXPECT_THAT(work(), ElementsAre(1e8f, 1)) << "the slice of rank 2 is there, but comes second";
  EXPECT_EQ(cursor_.expected_bytes(1), 4u);
  cursor_.add(0, make({3, 2}));
  EXPECT_EQ(cursor_.expected_bytes(0), 0u);
  expect(Cursor::Event::kBlocked, 2);
  EXPECT_THAT(work(), ElementsAre((1e8f + 3) + 3, 6));
  cursor_.add(1, make({7}));
  expect(Cursor::Event::kEnded, 0);
  EXPECT_THAT(work(), ElementsAre(7, 6));
}

TEST_F(CursorTest, SkipsEmptySlices) {
  cursor_.open(&program_, 1, DataType::kFloat32, &arrived_);
  cursor_.begin(make({1}));
  expect(Cursor::Event::kSend, 1);
  expect(Cursor::Event::kBlocked, 1);
  EXPECT_EQ(cursor_.expected_bytes(0), 4u) << "chunk 1 has no elements";
}

TEST_F(CursorTest, CloseReleasesBuffers) {
  cursor_.open(&program_, 2, DataType::kFloat32, &arrived_);
  cursor_.add(0, make({1, 2}));
  cursor_.add(1, make({3, 4}));
  cursor_.begin(make({5, 6}));
  cursor_.close();
  EXPECT_FALSE(cursor_.has_begun());
  EXPECT_EQ(pool_.bytes_in_use(), 0u);
}

}  // namespace
}  // namespace gleaner::collective
