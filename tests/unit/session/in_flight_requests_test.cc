#include "comm-lib/session/in_flight_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::session {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

// Requests of partitions of 4 bytes.
class InFlightRequestsTest : public ::testing::Test {
 protected:
  InFlightRequestsTest() { requests_.resize(6); }

  void open(uint64_t id, uint32_t begin, uint32_t end, bool in_place = true) {
    MutableBytes output = in_place ? MutableBytes(memory_) : MutableBytes(output_);
    requests_.open({.id = id, .op = ReduceOp::kAverage, .input = Buffer::borrow(memory_), .output = output}, begin, end,
                   begin * 4, 1);
  }
  Buffer result(std::byte fill) {
    Buffer result = pool_.take(4);
    std::ranges::fill(result.bytes(), fill);
    return result;
  }
  std::vector<uint64_t> completed() {
    std::vector<Done> done;
    requests_.complete(done);
    std::vector<uint64_t> ids;
    for (const Done& each : done) ids.push_back(each.id);
    return ids;
  }

  BufferPool pool_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(8), output_ = std::vector<std::byte>(8);
  InFlightRequests requests_;
};

TEST_F(InFlightRequestsTest, IsDoneWithItsLastResult) {
  open(7, 2, 4, false);
  EXPECT_TRUE(requests_.is_in_flight(2) && requests_.is_in_flight(3));
  EXPECT_FALSE(requests_.is_in_flight(1) || requests_.is_in_flight(4));
  EXPECT_EQ(requests_.op(3), ReduceOp::kAverage);
  requests_.add_result(3, 12, 4, result(std::byte{3}), false);
  EXPECT_THAT(completed(), IsEmpty());
  requests_.add_result(2, 8, 4, result(std::byte{2}), false);
  EXPECT_EQ(requests_.in_flight(), 1u);
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
  EXPECT_EQ(requests_.in_flight(), 0u);
  EXPECT_EQ(requests_.started(), 1u);
  EXPECT_FALSE(requests_.is_in_flight(2) || requests_.is_in_flight(3));
  EXPECT_EQ(output_[0], std::byte{2});
  EXPECT_EQ(output_[7], std::byte{3});
  EXPECT_THAT(memory_, Each(std::byte{0}));
}

TEST_F(InFlightRequestsTest, InputsMayBeLargerThanResults) {
  std::vector<std::byte> input(16);
  requests_.open({.id = 7, .input = Buffer::borrow(input), .output = output_}, 2, 4, 8, 2);
  {
    const Buffer second = requests_.input(3, 12, 4);
    EXPECT_EQ(second.bytes().data(), input.data() + 8);
    EXPECT_EQ(second.size(), 8u);
  }
  requests_.add_result(3, 12, 4, result(std::byte{3}), false);
  requests_.add_result(2, 8, 4, result(std::byte{2}), false);
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
  EXPECT_EQ(output_[3], std::byte{2});
  EXPECT_EQ(output_[4], std::byte{3});
}

TEST_F(InFlightRequestsTest, WaitsUntilNoFrameRefersToTheInput) {
  open(7, 0, 1);
  Buffer frame = requests_.input(0, 0, 4);
  EXPECT_EQ(frame.bytes().data(), memory_.data());
  requests_.add_result(0, 0, 4, result(std::byte{1}), false);
  EXPECT_THAT(completed(), IsEmpty());
  frame = {};
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
}

TEST_F(InFlightRequestsTest, ADelayedResultIsWrittenAtTheEnd) {
  open(7, 0, 2);
  EXPECT_TRUE(requests_.is_in_place(1));
  Buffer frame = requests_.input(1, 4, 4);
  requests_.add_result(1, 4, 4, result(std::byte{9}), true);
  requests_.add_result(0, 0, 4, result(std::byte{8}), false);
  EXPECT_THAT(completed(), IsEmpty());
  EXPECT_EQ(memory_[4], std::byte{0}) << "the frame still carries the input";
  frame = {};
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
  EXPECT_EQ(memory_[4], std::byte{9});
}

TEST_F(InFlightRequestsTest, ARequestWithoutPartitionsIsDoneAtOnce) {
  open(7, 3, 3);
  EXPECT_EQ(completed(), std::vector<uint64_t>{7});
}

TEST_F(InFlightRequestsTest, FailEndsAllRequests) {
  open(7, 0, 1);
  open(8, 2, 4, false);
  EXPECT_FALSE(requests_.is_in_place(2));
  std::vector<Done> done;
  requests_.fail(absl::AbortedError("why"), done);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[1].id, 8u);
  EXPECT_EQ(done[1].status, absl::AbortedError("why"));
  EXPECT_EQ(requests_.in_flight(), 0u);
  EXPECT_THAT(completed(), IsEmpty());
}

}  // namespace
}  // namespace gleaner::session
