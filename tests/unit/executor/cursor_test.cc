#include "comm-lib/executor/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/collective/gather.h"
#include "common/collective/schedule_builder.h"
#include "common/kernels/float_formats.h"

namespace gleaner::executor {
namespace {

using collective::Take;
using ::testing::ElementsAre;

// Rank 0 adds the vectors of ranks 1 and 2, in this order. It sends chunk 0 of the sum to rank 1, and gets chunk 1 of
// it from rank 2, to which it has sent its own contribution.
collective::Schedule mixed() {
  collective::ScheduleBuilder builder("mixed", {3}, 2);
  builder.transfer(1, 0, {0, 1}, Take::kReduce);
  builder.transfer(2, 0, {0, 1}, Take::kReduce);
  builder.transfer(0, 2, {1, 1}, Take::kReduce);
  builder.end_step();
  builder.transfer(0, 1, {0, 1}, Take::kCopy);
  builder.transfer(2, 0, {1, 1}, Take::kCopy);
  builder.end_step();
  return builder.take();
}

class CursorTest : public ::testing::Test {
 protected:
  // Opens a cursor for a partition of two fp16 values, whose partial sums are fp32.
  void open(uint64_t elements = 2) {
    cursor_.open(&program_, elements, {DataType::kFloat16, DataType::kFloat16}, &arrived_);
  }
  void begin(std::vector<float> values, uint32_t divisor = 1) {
    const std::vector<uint16_t> own = halves(values);
    cursor_.begin(std::as_bytes(std::span(own)), 0, divisor, pool_, kernels_);
  }
  template <typename T>
  Buffer make(const std::vector<T>& values) {
    Buffer buffer = pool_.take(sizeof(T) * values.size());
    std::memcpy(buffer.bytes().data(), values.data(), buffer.size());
    return buffer;
  }
  static std::vector<uint16_t> halves(const std::vector<float>& values) {
    std::vector<uint16_t> all;
    for (const float value : values) all.push_back(kernels::float32_to_float16(value));
    return all;
  }
  std::vector<float> result() {
    std::vector<uint16_t> values(cursor_.elements());
    cursor_.write_result(std::as_writable_bytes(std::span(values)).data(), kernels_);
    std::vector<float> all;
    for (const uint16_t value : values) all.push_back(kernels::float16_to_float32(value));
    return all;
  }
  // Expects this event after any number of receives. Returns the slice to send.
  Buffer expect(Cursor::Event event, uint32_t peer) {
    Cursor::Outcome outcome = cursor_.advance(kernels_);
    while (outcome.event == Cursor::Event::kReceived) outcome = cursor_.advance(kernels_);
    EXPECT_EQ(outcome.event, event);
    EXPECT_EQ(outcome.operation == nullptr ? 0 : outcome.operation->peer, peer);
    return outcome.slice;
  }

  const Program program_{mixed(), {}, 0};
  kernels::Kernels kernels_ = *kernels::Kernels::choose("");
  BufferPool pool_;
  ArrivedSlices arrived_;
  Cursor cursor_;
};

// 2048 + 1 + 1 is 2048 if each sum is rounded to fp16, and 2050 if only the last one is.
TEST_F(CursorTest, RoundsCompleteSumsOnce) {
  open();
  cursor_.add(1, make<float>({1}));
  EXPECT_FALSE(cursor_.has_begun());
  begin({2048, 5});
  EXPECT_EQ(expect(Cursor::Event::kSend, 2).size(), 4u) << "a contribution to a partial sum, in fp32";
  expect(Cursor::Event::kBlocked, 1);
  EXPECT_TRUE(cursor_.has_slice_from(1)) << "the slice of rank 2 is there, but comes second";
  EXPECT_FALSE(cursor_.has_slice_from(0));
  EXPECT_EQ(cursor_.expected_bytes(0), 4u);
  cursor_.add(0, make<float>({1}));
  EXPECT_EQ(cursor_.expected_bytes(0), 0u);
  const Buffer sent = expect(Cursor::Event::kSend, 1);
  ASSERT_EQ(sent.size(), 2u) << "a result, in fp16";
  EXPECT_EQ(std::memcmp(sent.bytes().data(), halves({2050}).data(), 2), 0);
  expect(Cursor::Event::kBlocked, 2);
  EXPECT_EQ(cursor_.expected_bytes(1), 2u);
  cursor_.add(1, make(halves({7})));
  expect(Cursor::Event::kEnded, 0);
  EXPECT_THAT(result(), ElementsAre(2050, 7));
}

// The sum of 4 times 30000 is infinite in fp16.
TEST_F(CursorTest, DividesBeforeItRounds) {
  open();
  begin({30000, 0}, 4);
  expect(Cursor::Event::kSend, 2);
  cursor_.add(0, make<float>({60000}));
  cursor_.add(1, make<float>({30000}));
  const Buffer sent = expect(Cursor::Event::kSend, 1);
  EXPECT_EQ(std::memcmp(sent.bytes().data(), halves({30000}).data(), 2), 0);
}

TEST_F(CursorTest, SkipsEmptySlices) {
  open(1);
  begin({1});
  expect(Cursor::Event::kBlocked, 1);
  cursor_.add(0, make<float>({1}));
  cursor_.add(1, make<float>({1}));
  EXPECT_EQ(cursor_.expected_bytes(1), 0u) << "chunk 1 has no elements";
  expect(Cursor::Event::kSend, 1);
  expect(Cursor::Event::kEnded, 0);
}

TEST_F(CursorTest, CloseReleasesBuffers) {
  open();
  cursor_.add(0, make<float>({1}));
  cursor_.add(1, make<float>({3}));
  begin({5, 6});
  cursor_.close();
  EXPECT_FALSE(cursor_.has_begun());
  EXPECT_EQ(pool_.bytes_in_use(), 0u);
}

// Worker 2 has rank 0, so its contribution lies in block 0, and is the last one in the order of workers.
TEST_F(CursorTest, GatherAddsInTheOrderOfWorkers) {
  const std::vector<uint32_t> ranks = {1, 2, 0};
  const Program program(collective::gather(3), ranks, 2);
  cursor_.open(&program, 1, {DataType::kFloat32, DataType::kFloat32}, &arrived_);
  const float own = 1;
  cursor_.begin(std::as_bytes(std::span(&own, 1)), 2, 1, pool_, kernels_);
  const Buffer sent = expect(Cursor::Event::kSend, 1);
  EXPECT_EQ(std::memcmp(sent.bytes().data(), &own, 4), 0);
  cursor_.add(program.source_of(0), make<float>({0x1p30f}));
  cursor_.add(program.source_of(1), make<float>({-0x1p30f}));
  expect(Cursor::Event::kSend, 0);
  expect(Cursor::Event::kEnded, 0);
  float sum = 0;
  cursor_.write_result(std::as_writable_bytes(std::span(&sum, 1)).data(), kernels_);
  EXPECT_EQ(sum, 1) << "2^30 comes and goes before the 1, which it would swallow";
}

}  // namespace
}  // namespace gleaner::executor
