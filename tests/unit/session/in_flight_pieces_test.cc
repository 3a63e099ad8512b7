#include "comm-lib/session/in_flight_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::session {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

constexpr plan::Encoding kPlain;
constexpr plan::Encoding kPartialSums = {.contribution = DataType::kFloat32, .result = DataType::kFloat16};

// Pieces of partitions of 4 bytes.
class InFlightPiecesTest : public ::testing::Test {
 protected:
  InFlightPiecesTest() { pieces_.resize(6); }

  void open(uint64_t id, uint32_t begin, uint32_t end, bool in_place = true) {
    MutableBytes output = in_place ? MutableBytes(memory_) : MutableBytes(output_);
    pieces_.open({.id = id, .op = ReduceOp::kAverage, .input = Buffer::borrow(memory_), .output = output}, begin, end,
                 begin * 4, kPlain);
  }
  Buffer result(std::byte fill) {
    Buffer result = pool_.take(4);
    std::ranges::fill(result.bytes(), fill);
    return result;
  }
  std::vector<uint64_t> completed() {
    std::vector<Done> done;
    pieces_.complete(done);
    std::vector<uint64_t> ids;
    for (const Done& each : done) ids.push_back(each.id);
    return ids;
  }

  BufferPool pool_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(8), output_ = std::vector<std::byte>(8);
  InFlightPieces pieces_;
};

TEST_F(InFlightPiecesTest, DoneWithLastResult) {
  open(7, 2, 4, false);
  EXPECT_TRUE(pieces_.is_in_flight(2) && pieces_.is_in_flight(3));
  EXPECT_FALSE(pieces_.is_in_flight(1) || pieces_.is_in_flight(4));
  EXPECT_EQ(pieces_.op(3), ReduceOp::kAverage);
  pieces_.add_result(3, 12, 4, result(std::byte{3}), false);
  EXPECT_THAT(completed(), IsEmpty());
  pieces_.add_result(2, 8, 4, result(std::byte{2}), false);
  EXPECT_EQ(pieces_.in_flight(), 1u);
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
  EXPECT_EQ(pieces_.in_flight(), 0u);
  EXPECT_EQ(pieces_.started(), 1u);
  EXPECT_FALSE(pieces_.is_in_flight(2) || pieces_.is_in_flight(3));
  EXPECT_EQ(output_[0], std::byte{2});
  EXPECT_EQ(output_[7], std::byte{3});
  EXPECT_THAT(memory_, Each(std::byte{0}));
}

TEST_F(InFlightPiecesTest, InputLargerThanResult) {
  std::vector<std::byte> input(16);
  pieces_.open({.id = 7, .input = Buffer::borrow(input), .output = output_}, 2, 4, 8, kPartialSums);
  {
    const Buffer second = pieces_.input(3, 12, 4);
    EXPECT_EQ(second.bytes().data(), input.data() + 8);
    EXPECT_EQ(second.size(), 8u);
  }
  pieces_.add_result(3, 12, 4, result(std::byte{3}), false);
  pieces_.add_result(2, 8, 4, result(std::byte{2}), false);
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
  EXPECT_EQ(output_[3], std::byte{2});
  EXPECT_EQ(output_[4], std::byte{3});
}

TEST_F(InFlightPiecesTest, WaitsForFramesOfInput) {
  open(7, 0, 1);
  Buffer frame = pieces_.input(0, 0, 4);
  EXPECT_EQ(frame.bytes().data(), memory_.data());
  pieces_.add_result(0, 0, 4, result(std::byte{1}), false);
  EXPECT_THAT(completed(), IsEmpty());
  frame = {};
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
}

TEST_F(InFlightPiecesTest, WritesDelayedResultLast) {
  open(7, 0, 2);
  EXPECT_TRUE(pieces_.is_in_place(1));
  Buffer frame = pieces_.input(1, 4, 4);
  pieces_.add_result(1, 4, 4, result(std::byte{9}), true);
  pieces_.add_result(0, 0, 4, result(std::byte{8}), false);
  EXPECT_THAT(completed(), IsEmpty());
  EXPECT_EQ(memory_[4], std::byte{0}) << "the frame still carries the input";
  frame = {};
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
  EXPECT_EQ(memory_[4], std::byte{9});
}

TEST_F(InFlightPiecesTest, EmptyPieceIsDone) {
  open(7, 3, 3);
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
}

TEST_F(InFlightPiecesTest, FailEndsAllPieces) {
  open(7, 0, 1);
  open(8, 2, 4, false);
  EXPECT_FALSE(pieces_.is_in_place(2));
  std::vector<Done> done;
  pieces_.fail(absl::AbortedError("why"), done);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].id, 8u);
  EXPECT_EQ(done[1].status, absl::AbortedError("why"));
  EXPECT_EQ(pieces_.in_flight(), 0u);
  EXPECT_THAT(completed(), IsEmpty());
}

}  // namespace
}  // namespace gleaner::session
