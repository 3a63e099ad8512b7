// Tests of failures after the start: every local rank must learn of them, with the reason.
#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class GroupFailures : public ::testing::Test {
 protected:
  // Starts a push_pull of an int32 tensor at `rank`.
  absl::Status start(uint32_t rank, uint32_t tensor, ReduceOp op = ReduceOp::kSum) {
    auto& data = data_[{rank, tensor}];
    data.assign(5, static_cast<int32_t>(rank + 1));
    const auto bytes = std::as_writable_bytes(std::span(data));
    return ranks_[rank].group->start(tensor, op, bytes, bytes);
  }
  void settle() {
    for (int i = 0; i < 50; ++i) ranks_.turn();
  }
  bool until_all_failed() {
    return ranks_.until([&] { return ranks_.all([](const auto& rank) { return rank.failed.has_value(); }); });
  }
  void SetUp() override { ASSERT_TRUE(ranks_.connect()); }

  Ranks ranks_{3};
  const std::vector<local::TensorShape> shapes_ = {{5, DataType::kInt32, "a"}, {5, DataType::kInt32, "b"}};
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int32_t>> data_;
};

TEST_F(GroupFailures, TheNetworksStatusReachesEveryRankAndTheNextStepMayWork) {
  ranks_.register_tensors(shapes_);
  ranks_[0].network = [&](uint32_t tensor, MutableBytes) {
    ranks_[0].group->publish(tensor, absl::UnavailableError("summer/1 is lost " + std::string(1000, '.')));
  };
  for (uint32_t rank = 0; rank < 3; ++rank) ASSERT_TRUE(start(rank, 1).ok());
  ASSERT_TRUE(ranks_.until([&] { return ranks_.all([](const auto& rank) { return rank.done_count == 1; }); }));
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(absl::IsUnavailable(ranks_[rank].done[1]));
    EXPECT_THAT(std::string(ranks_[rank].done[1].message()), HasSubstr("summer/1 is lost"));
    EXPECT_EQ((data_[{rank, 1}]), std::vector<int32_t>(5, static_cast<int32_t>(rank + 1))) << "the output was changed";
  }
  EXPECT_EQ(ranks_[2].done[1].message().size(), 400);
  ranks_[0].network = nullptr;
  for (uint32_t rank = 0; rank < 3; ++rank) ASSERT_TRUE(start(rank, 1).ok());
  ASSERT_TRUE(ranks_.until([&] { return ranks_.all([](const auto& rank) { return rank.done_count == 2; }); }));
  EXPECT_TRUE(ranks_[2].done[1].ok());
  EXPECT_EQ((data_[{2, 1}]), std::vector<int32_t>(5, 6));
}

// Other workers may agree and sum the push_pull without this group, so the group's next one would be taken for it.
TEST_F(GroupFailures, ADisagreementOnTheOpNamesTheRanksAndEndsTheGroup) {
  ranks_.register_tensors(shapes_);
  ASSERT_TRUE(start(0, 0).ok());
  ASSERT_TRUE(start(1, 0).ok());
  ASSERT_TRUE(start(2, 0, ReduceOp::kAverage).ok());
  ASSERT_TRUE(until_all_failed());
  const absl::Status reason = *ranks_[0].failed;
  EXPECT_TRUE(absl::IsInvalidArgument(reason));
  EXPECT_THAT(std::string(reason.message()),
              StartsWith("tensor 'a': in its 1st push_pull local rank 0 of worker 2 asks for its sum, "
                         "local rank 2 of worker 2 for its average; "));
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(*ranks_[rank].failed, reason);
    for (const uint32_t tensor : {0, 1}) EXPECT_EQ(start(rank, tensor), reason);
    EXPECT_EQ(ranks_[rank].done_count, 0);
  }
  EXPECT_TRUE(ranks_[0].reduced.empty());
}

TEST_F(GroupFailures, WrongCallsAreRefused) {
  ranks_.register_tensors(shapes_);
  std::vector<std::byte> bytes(40);
  const MutableBytes right(bytes.data(), 20);
  local::Group& group = *ranks_[1].group;
  EXPECT_TRUE(absl::IsInvalidArgument(group.start(2, ReduceOp::kSum, right, right)));
  EXPECT_TRUE(absl::IsInvalidArgument(group.start(0, ReduceOp::kSum, right.first(19), right)));
  EXPECT_TRUE(absl::IsInvalidArgument(group.start(0, ReduceOp::kSum, right, right.first(16))));
  EXPECT_TRUE(absl::IsInvalidArgument(group.start(0, ReduceOp::kSum, right, {bytes.data() + 4, 20})));
  EXPECT_TRUE(absl::IsInvalidArgument(group.start(0, static_cast<ReduceOp>(9), right, right)));
  EXPECT_TRUE(group.start(0, ReduceOp::kSum, right, {bytes.data() + 20, 20}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(group.start(0, ReduceOp::kSum, right, right)));
}

// A rank may start a push_pull before its shared memory is mapped, and any rank may be the first to register new
// tensors.
TEST_F(GroupFailures, RegistrationInAnyOrder) {
  for (const std::vector<uint32_t>& order : std::vector<std::vector<uint32_t>>{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    const uint32_t first = static_cast<uint32_t>(ranks_[0].done.size());
    for (uint32_t rank : order) {
      ASSERT_TRUE(ranks_[rank].group->register_tensors({}).ok());
      ASSERT_TRUE(ranks_[rank].group->register_tensors(shapes_).ok());
      ASSERT_TRUE(start(rank, first + 1).ok());
      ASSERT_TRUE(ranks_[rank].group->register_tensors(shapes_).ok());
      ASSERT_TRUE(start(rank, first + 3).ok());
      if (rank != order.back()) settle();
      EXPECT_EQ(ranks_[rank].done.size(), first);
    }
    for (uint32_t rank : order) {
      ASSERT_TRUE(start(rank, first).ok());
      ASSERT_TRUE(start(rank, first + 2).ok());
    }
    ASSERT_TRUE(
        ranks_.until([&] { return ranks_.all([&](const auto& rank) { return rank.done.size() == first + 4; }); }));
    for (const auto& [place, data] : data_) EXPECT_EQ(data, std::vector<int32_t>(5, 6));
  }
}

TEST(GroupRegistration, MayHappenBeforeOtherRanksJoin) {
  Ranks ranks(0);
  for (uint32_t rank : {1u, 0u}) {
    ranks.open(rank, 2);
    TestRank& opened = ranks[ranks.size() - 1];
    ASSERT_TRUE(opened.group->register_tensors(std::vector<local::TensorShape>{{1, DataType::kInt32}}).ok());
  }
  int32_t data[2] = {20, 22};
  for (size_t i = 0; i < 2; ++i) {
    const auto bytes = std::as_writable_bytes(std::span(&data[i], 1));
    ASSERT_TRUE(ranks[i].group->start(0, ReduceOp::kSum, bytes, bytes).ok());
  }
  ASSERT_TRUE(ranks.until([&] { return ranks.all([](const auto& rank) { return rank.done_count == 1; }); }));
  EXPECT_EQ(data[0], 42);
  EXPECT_EQ(data[1], 42);
}

TEST_F(GroupFailures, DifferentTensorsEndTheGroup) {
  ASSERT_TRUE(ranks_[0].group->register_tensors(shapes_).ok());
  ASSERT_TRUE(ranks_[1].group->register_tensors(shapes_).ok());
  const std::vector<local::TensorShape> other = {{5, DataType::kInt32}, {5, DataType::kFloat32}};
  ASSERT_TRUE(ranks_[2].group->register_tensors(other).ok());
  ASSERT_TRUE(until_all_failed());
  for (uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(absl::IsInvalidArgument(*ranks_[rank].failed));
    EXPECT_THAT(std::string(ranks_[rank].failed->message()), HasSubstr("local rank 2 of worker 2"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(start(1, 0)));
}

TEST_F(GroupFailures, TensorsBeyondTheAddressSpaceAreRefused) {
  for (const uint64_t elements : {uint64_t{1} << 62, ~uint64_t{0}, uint64_t{1} << 44}) {
    Ranks ranks(2);
    ASSERT_TRUE(ranks.connect());
    const std::vector<local::TensorShape> shapes = {{1, DataType::kFloat32}, {elements, DataType::kFloat64}};
    EXPECT_TRUE(absl::IsInvalidArgument(ranks[0].group->register_tensors(shapes)));
    ASSERT_TRUE(ranks.until([&] { return ranks[1].failed.has_value(); }));
    EXPECT_FALSE(ranks[0].failed);  // register_tensors() has returned the error
  }
}

TEST_F(GroupFailures, OneRanksFailureReachesAllRanks) {
  ranks_.register_tensors(shapes_);
  for (const uint32_t rank : {0u, 2u}) ASSERT_TRUE(start(rank, 0).ok());
  settle();
  ranks_[2].group->fail(absl::AbortedError("out of patience"));
  ASSERT_TRUE(ranks_.until([&] { return ranks_[0].failed && ranks_[1].failed; }));
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_TRUE(absl::IsAborted(*ranks_[rank].failed));
    EXPECT_THAT(std::string(ranks_[rank].failed->message()),
                AllOf(HasSubstr("local rank 2 of worker 2"), HasSubstr("out of patience")));
    EXPECT_TRUE(absl::IsAborted(start(rank, 1)));
  }
  settle();
  EXPECT_FALSE(ranks_[2].failed) << "rank 2 knows its own failure";
  EXPECT_TRUE(absl::IsAborted(start(2, 1)));
  EXPECT_EQ(ranks_[0].done_count + ranks_[1].done_count + ranks_[2].done_count, 0);
  // A late result of the network must do no harm.
  ranks_[0].group->publish(0, absl::OkStatus());
  EXPECT_FALSE(ranks_[0].group->has_work());
}

// The last message of a rank must arrive even if the rank closed its socket with unread messages.
TEST_F(GroupFailures, TheReasonIsNotLostWithUnreadMessages) {
  ASSERT_TRUE(ranks_[0].group->register_tensors(shapes_).ok());
  for (int i = 0; i < 20; ++i) ranks_[0].turn(0);
  ranks_[2].group->fail(absl::AbortedError("out of patience"));
  ASSERT_TRUE(ranks_.until([&] { return ranks_[0].failed && ranks_[1].failed; }));
  EXPECT_THAT(std::string(ranks_[1].failed->message()), HasSubstr("out of patience"));
}

TEST_F(GroupFailures, TheLeadersFailureWhileTheNetworkHasTheSum) {
  ranks_.register_tensors(shapes_);
  MutableBytes region;
  ranks_[0].network = [&](uint32_t, MutableBytes sum) { region = sum; };
  for (uint32_t rank = 0; rank < 3; ++rank) ASSERT_TRUE(start(rank, 0).ok());
  ASSERT_TRUE(ranks_.until([&] { return !region.empty(); }));
  ranks_[0].group->fail(absl::UnavailableError("summer/0 is lost"));
  ASSERT_TRUE(ranks_.until([&] { return ranks_[1].failed && ranks_[2].failed; }));
  EXPECT_THAT(std::string(ranks_[1].failed->message()), HasSubstr("summer/0 is lost"));
  std::memset(region.data(), 1, region.size());  // the memory belongs to the session until the group is destroyed
}

TEST_F(GroupFailures, PublishWithoutASumIsAnError) {
  ranks_.register_tensors(shapes_);
  ranks_[0].group->publish(1, absl::OkStatus());
  ASSERT_TRUE(until_all_failed());
  EXPECT_TRUE(absl::IsInternal(*ranks_[1].failed));
}

TEST_F(GroupFailures, OnlyTheLeaderMayPublish) {
  ranks_.register_tensors(shapes_);
  ranks_[1].group->publish(1, absl::OkStatus());
  ASSERT_TRUE(until_all_failed());
  EXPECT_TRUE(absl::IsInternal(*ranks_[0].failed));
}

TEST_F(GroupFailures, RanksMayLeaveOneAfterTheOther) {
  ranks_.register_tensors(shapes_);
  for (uint32_t rank = 0; rank < 3; ++rank) ASSERT_TRUE(start(rank, 0).ok());
  ASSERT_TRUE(ranks_.until([&] { return ranks_.all([](const auto& rank) { return rank.done_count == 1; }); }));
  ranks_.close(1);
  settle();
  EXPECT_FALSE(ranks_[0].failed);
  EXPECT_FALSE(ranks_[2].failed);
  EXPECT_TRUE(absl::IsUnavailable(start(0, 0)));  // the leader knows that rank 1 has left
  ranks_.close(0);
  settle();
  EXPECT_FALSE(ranks_[2].failed);
  const absl::Status status = start(2, 0);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("local rank 0 of worker 2 has left"));
}

TEST_F(GroupFailures, ARankThatWaitsForARankThatHasLeftGetsAnError) {
  ranks_.register_tensors(shapes_);
  ranks_.close(1);
  settle();
  ASSERT_TRUE(start(2, 0).ok());  // rank 2 does not know that rank 1 has left
  ASSERT_TRUE(until_all_failed());
  EXPECT_TRUE(absl::IsUnavailable(*ranks_[2].failed));
  EXPECT_THAT(std::string(ranks_[2].failed->message()), HasSubstr("local rank 1 of worker 2 has left"));
}

TEST_F(GroupFailures, LeavingWhileOthersWait) {
  ranks_.register_tensors(shapes_);
  ASSERT_TRUE(start(2, 0).ok());
  settle();
  ranks_.close(1);
  ASSERT_TRUE(until_all_failed());
  EXPECT_THAT(std::string(ranks_[2].failed->message()), HasSubstr("local rank 1 of worker 2 has left"));
}

TEST_F(GroupFailures, TheLeaderLeavingWhileOthersWait) {
  ranks_.register_tensors(shapes_);
  settle();
  ASSERT_TRUE(start(2, 0).ok());
  ranks_[2].turn(0);
  ranks_.close(0);
  ASSERT_TRUE(ranks_.until([&] { return ranks_[2].failed.has_value(); }));
  settle();
  EXPECT_FALSE(ranks_[1].failed) << "rank 1 waits for no other rank";
}

TEST_F(GroupFailures, LeavingInTheMiddleIsAFailure) {
  ranks_.register_tensors(shapes_);
  ASSERT_TRUE(start(1, 0).ok());
  settle();
  ranks_.close(1);
  ASSERT_TRUE(until_all_failed());
  EXPECT_THAT(std::string(ranks_[2].failed->message()),
              AllOf(HasSubstr("local rank 1 of worker 2"), HasSubstr("in flight")));
}

TEST(GroupStart, LeavingBeforeTheStartIsAFailure) {
  Ranks ranks(0);
  ranks.open(0, 3);
  ranks.open(1, 3);
  for (int i = 0; i < 20; ++i) ranks.turn();
  ranks.close(1);
  ASSERT_TRUE(ranks.until([&] { return ranks[0].failed.has_value(); }));
  EXPECT_TRUE(absl::IsUnavailable(*ranks[0].failed));
  EXPECT_THAT(std::string(ranks[0].failed->message()), HasSubstr("local rank 1 of worker 2 left before the start"));
}

}  // namespace
}  // namespace gleaner::testing
