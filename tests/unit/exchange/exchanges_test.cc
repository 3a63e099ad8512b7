// Tests that pieces and frames reach the exchange concerned.
#include "comm-lib/exchange/exchanges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::exchange {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using wire::FrameType;
using SummedBy = Exchanges::SummedBy;

constexpr absl::Duration kNow = absl::Hours(1);

class FakeExchange : public Exchange {
 public:
  absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration, Actions&) override {
    epoch = plan->epoch;
    return absl::OkStatus();
  }
  absl::Status start(PieceRequest piece, absl::Duration, Actions& actions) override {
    started.push_back(piece.tensor);
    schedules.push_back(piece.schedule);
    actions.sends.emplace_back();
    return refusal;
  }
  void on_connected(uint32_t member, absl::Duration, Actions&) override { connected.push_back(member); }
  void on_disconnected(uint32_t) override { connected.pop_back(); }
  absl::Status on_frame(uint32_t, const wire::Header& header, Buffer, absl::Duration, Actions&) override {
    frames.push_back(header.type);
    return absl::OkStatus();
  }
  void set_round_trip(absl::Duration) override {}
  void on_tick(absl::Duration, Actions&) override { ++ticks; }
  void set_ending(std::span<const uint32_t> left) override { left_workers.assign(left.begin(), left.end()); }
  void fail(const absl::Status& status, Actions& actions) override { actions.done.push_back({9, status}); }
  uint64_t step(uint32_t, uint32_t) const override { return steps; }
  bool idle() const override { return is_idle; }
  std::vector<uint32_t> waiting_for() const override { return waits; }

  uint32_t epoch = 0;
  std::vector<uint32_t> started, connected, waits, left_workers;
  std::vector<std::optional<uint32_t>> schedules;  // of the pieces started
  std::vector<FrameType> frames;
  int ticks = 0;
  bool is_idle = true;
  uint64_t steps = 0;
  absl::Status refusal;
};

PieceRequest piece(uint64_t id, uint32_t tensor) {
  PieceRequest piece;
  piece.id = id;
  piece.tensor = tensor;
  return piece;
}

wire::Header header(FrameType type) {
  wire::Header header;
  header.type = type;
  return header;
}

// Returns a plan in which owners sum tensor 0, and a ring of workers sums tensor 1.
std::shared_ptr<plan::Plan> make_mixed_plan() {
  auto plan = std::make_shared<plan::Plan>();
  plan->epoch = 4;
  plan->workers = 2;
  plan->members.resize(2, {.bits_per_second = 1e9});
  plan->tensors.resize(2);
  plan->tensors[0].name = "w";
  plan->tensors[1].name = "weights";
  plan->tensors[1].schedule = 0;
  plan->partitions = {{.tensor = 0, .bytes = 4}, {.tensor = 1, .bytes = 4}};
  plan->first_partition = {0, 1, 2};
  plan->schedules.push_back({"ring", {}, 0, {}});
  return plan;
}

class ExchangesTest : public testing::Test {
 protected:
  FakeExchange* add(SummedBy kind) {
    auto added = std::make_unique<FakeExchange>();
    FakeExchange* const raw = added.get();
    exchanges_.add(kind, std::move(added));
    return raw;
  }

  Exchanges exchanges_;
};

TEST_F(ExchangesTest, RefuseAScheduleThatNoExchangeExecutes) {
  FakeExchange* const owners = add(SummedBy::kOwners);
  const absl::Status status = exchanges_.prepare(*make_mixed_plan(), kNow);
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(status.message(), HasSubstr("tensor weights has a schedule (ring)"));
  auto plan = make_mixed_plan();
  plan->tensors[1].schedule.reset();
  EXPECT_EQ(exchanges_.prepare(*plan, kNow), absl::OkStatus());
  EXPECT_FALSE(exchanges_.takes_accepted(FrameType::kSlice)) << "the colocated summer refuses the frame";
  ASSERT_EQ(exchanges_.apply(plan, kNow), absl::OkStatus());
  exchanges_.start(piece(1, 1), kNow);
  EXPECT_THAT(owners->started, ElementsAre(1u));
  exchanges_.start(piece(2, 7), kNow);
  EXPECT_THAT(owners->started, ElementsAre(1u, 7u)) << "the exchange says that the tensor does not exist";
}

TEST_F(ExchangesTest, EachPieceAndFrameGoesToOne) {
  FakeExchange* const owners = add(SummedBy::kOwners);
  FakeExchange* const workers = add(SummedBy::kWorkers);
  owners->steps = 5;
  workers->steps = 6;
  EXPECT_EQ(exchanges_.prepare(*make_mixed_plan(), kNow), absl::OkStatus());
  ASSERT_EQ(exchanges_.apply(make_mixed_plan(), kNow), absl::OkStatus());
  EXPECT_EQ(owners->epoch, 4u);
  EXPECT_EQ(workers->epoch, 4u);
  exchanges_.start(piece(1, 0), kNow);
  exchanges_.start(piece(2, 1), kNow);
  EXPECT_THAT(owners->started, ElementsAre(0u));
  EXPECT_THAT(workers->started, ElementsAre(1u));
  EXPECT_EQ(exchanges_.step(0, 0), 11u) << "each exchange counts the push_pulls that it has summed";

  EXPECT_TRUE(exchanges_.takes_accepted(FrameType::kSlice));
  EXPECT_TRUE(exchanges_.takes_accepted(FrameType::kArrived));
  EXPECT_FALSE(exchanges_.takes_accepted(FrameType::kPush));
  ASSERT_EQ(exchanges_.on_accepted_frame(1, header(FrameType::kSlice), {}, kNow), absl::OkStatus());
  ASSERT_EQ(exchanges_.on_frame(1, header(FrameType::kResult), {}, kNow), absl::OkStatus());
  ASSERT_EQ(exchanges_.on_frame(1, header(FrameType::kSlice), {}, kNow), absl::OkStatus());
  EXPECT_THAT(workers->frames, ElementsAre(FrameType::kSlice));
  EXPECT_THAT(owners->frames, ElementsAre(FrameType::kResult, FrameType::kSlice))
      << "slices from owners are for the exchange that refuses them";
}

// Returns the plan that gives tensor 0 to the ring from its push_pull `from` on.
std::shared_ptr<plan::Plan> make_change(uint32_t epoch, uint64_t from) {
  auto plan = make_mixed_plan();
  plan->epoch = epoch;
  plan->tensors[0].schedule = 0;
  plan->tensors[0].schedule_from = from;
  return plan;
}

class ChangingExchangesTest : public ExchangesTest {
 protected:
  ChangingExchangesTest() : owners_(*add(SummedBy::kOwners)), workers_(*add(SummedBy::kWorkers)) {
    EXPECT_EQ(exchanges_.apply(make_mixed_plan(), kNow), absl::OkStatus());
    exchanges_.start(piece(1, 0), kNow);
    EXPECT_EQ(exchanges_.prepare(*make_change(5, 1), kNow), absl::OkStatus());
    exchanges_.start(piece(2, 0), kNow);
    exchanges_.start(piece(3, 1), kNow);
    EXPECT_THAT(owners_.started, ElementsAre(0u)) << "push_pull 1 is held";
    EXPECT_THAT(workers_.started, ElementsAre(1u)) << "another tensor";
    EXPECT_EQ(exchanges_.held_tensor(), "w");
    EXPECT_FALSE(exchanges_.idle());
  }

  FakeExchange& owners_;
  FakeExchange& workers_;
};

TEST_F(ChangingExchangesTest, HeldPiecesGoByTheNewStrategyOnceItsPlanIsInForce) {
  ASSERT_EQ(exchanges_.apply(make_change(5, 1), kNow), absl::OkStatus());
  EXPECT_THAT(owners_.started, ElementsAre(0u));
  EXPECT_THAT(workers_.started, ElementsAre(1u, 0u));
  EXPECT_EQ(workers_.schedules.back(), 0u);
  EXPECT_EQ(exchanges_.held_tensor(), "");
  EXPECT_TRUE(exchanges_.idle());
}

TEST_F(ChangingExchangesTest, HeldPiecesGoByTheOldStrategyIfItsPlanIsWithdrawn) {
  exchanges_.withdraw(5, kNow);
  EXPECT_THAT(owners_.started, ElementsAre(0u, 0u));
  EXPECT_EQ(owners_.schedules.back(), std::nullopt);
  EXPECT_EQ(exchanges_.held_tensor(), "");
}

TEST_F(ChangingExchangesTest, AnotherPlanReleasesThePieces) {
  EXPECT_EQ(exchanges_.prepare(*make_change(6, 1), kNow), absl::OkStatus());
  EXPECT_THAT(owners_.started, ElementsAre(0u)) << "the other plan holds the piece, too";
  EXPECT_EQ(exchanges_.prepare(*make_change(7, 2), kNow), absl::OkStatus());
  EXPECT_THAT(owners_.started, ElementsAre(0u, 0u));
  exchanges_.start(piece(4, 0), kNow);
  EXPECT_FALSE(exchanges_.idle());
  EXPECT_TRUE(absl::IsFailedPrecondition(exchanges_.prepare(*make_change(8, 1), kNow)))
      << "the pieces of push_pull 1 have begun by the old strategy";
  EXPECT_THAT(owners_.started, ElementsAre(0u, 0u, 0u)) << "a refused plan also replaces the one before";
}

TEST_F(ChangingExchangesTest, PlansMustFollowThePlanInForce) {
  auto plan = make_change(6, 1);
  plan->tensors.pop_back();
  EXPECT_TRUE(absl::IsFailedPrecondition(exchanges_.prepare(*plan, kNow)));
}

TEST_F(ChangingExchangesTest, FailureEndsHeldPieces) {
  exchanges_.fail(absl::AbortedError("the job ends"));
  ASSERT_EQ(exchanges_.actions().done.size(), 3u);
  EXPECT_EQ(exchanges_.actions().done[0].id, 2u);
  EXPECT_TRUE(absl::IsAborted(exchanges_.actions().done[0].status));
}

TEST_F(ExchangesTest, PieceThatDidNotBeginDoesNotCount) {
  FakeExchange* const owners = add(SummedBy::kOwners);
  add(SummedBy::kWorkers);
  ASSERT_EQ(exchanges_.apply(make_mixed_plan(), kNow), absl::OkStatus());
  owners->refusal = absl::InvalidArgumentError("the piece has a wrong size");
  exchanges_.start(piece(1, 0), kNow);
  owners->refusal = absl::OkStatus();
  exchanges_.start(piece(2, 0), kNow);
  EXPECT_EQ(exchanges_.prepare(*make_change(5, 1), kNow), absl::OkStatus()) << "one push_pull has begun";
}

TEST_F(ExchangesTest, APieceThatCannotStartEndsWithTheError) {
  add(SummedBy::kOwners)->refusal = absl::InvalidArgumentError("the piece has a wrong size");
  ASSERT_EQ(exchanges_.apply(make_mixed_plan(), kNow), absl::OkStatus());
  exchanges_.start(piece(8, 0), kNow);
  ASSERT_EQ(exchanges_.actions().done.size(), 1u);
  EXPECT_EQ(exchanges_.actions().done[0].id, 8u);
  EXPECT_TRUE(absl::IsInvalidArgument(exchanges_.actions().done[0].status));
}

TEST_F(ExchangesTest, AllOfThemHearOfConnectionsAndTimes) {
  EXPECT_TRUE(exchanges_.idle());
  EXPECT_FALSE(exchanges_.has_actions());
  FakeExchange* const owners = add(SummedBy::kOwners);
  FakeExchange* const workers = add(SummedBy::kWorkers);
  owners->waits = {2, 1};
  workers->waits = {1, 4};
  EXPECT_THAT(exchanges_.waiting_for(), UnorderedElementsAre(1u, 2u, 4u));
  exchanges_.on_connected(1, kNow);
  exchanges_.on_tick(kNow);
  exchanges_.set_ending(std::vector<uint32_t>{3});
  for (const FakeExchange* const each : {owners, workers}) {
    EXPECT_THAT(each->connected, ElementsAre(1u));
    EXPECT_EQ(each->ticks, 1);
    EXPECT_THAT(each->left_workers, ElementsAre(3u));
  }
  exchanges_.on_disconnected(1);
  EXPECT_THAT(workers->connected, IsEmpty());
  workers->is_idle = false;
  EXPECT_FALSE(exchanges_.idle());
  exchanges_.fail(absl::AbortedError("the job ends"));
  EXPECT_EQ(exchanges_.actions().done.size(), 2u);
  EXPECT_TRUE(exchanges_.has_actions());
}

}  // namespace
}  // namespace gleaner::exchange
