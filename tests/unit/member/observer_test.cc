// Tests of an observer that takes a trace of a running job, over real gRPC on loopback.
#include "common/member/observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "coordinator/service/server.h"
#include "tests/unit/member/participant.h"

namespace gleaner {
namespace {

using control::TraceOrder;
using member::Observer;
using testing::HasSubstr;

trace::Recording recording_with(uint64_t step) { return {{{1000, step, 0, 0, 0, 0, trace::Kind::kRequested}}, 0}; }

class ObserverTest : public testing::Test {
 protected:
  ObserverTest() : system_({"test", LogLevel::kOff}) {
    coordinator::Options options;
    options.workers = 2;
    options.summers = 1;
    options.deadline = options.summer_timeout = absl::Minutes(5);  // no member of a slow machine counts as silent
    auto server = coordinator::Server::start(system_.env(), options, kToken, {"127.0.0.1", 0}, nullptr);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    join_.coordinator = server_->address();
    join_.token = kToken;
  }
  std::unique_ptr<Participant> member(control::Role role, uint32_t index) {
    member::JoinOptions join = join_;
    join.identity.role = role;
    join.identity.index = index;
    join.identity.address = "10.0.0.1:7";
    return std::make_unique<Participant>(system_.env(), join);
  }
  void begin_job() {
    for (uint32_t i = 0; i < 2; ++i) members_.push_back(member(control::Role::kWorker, i));
    members_.push_back(member(control::Role::kSummer, 0));
    for (const auto& member : members_) ASSERT_NE(member->await_epoch(1), nullptr);
  }
  std::unique_ptr<Observer> observe() {
    auto observer = Observer::join(system_.env(), join_);
    EXPECT_TRUE(observer.ok()) << observer.status();
    return observer.ok() ? *std::move(observer) : nullptr;
  }

  SystemEnv system_;
  member::JoinOptions join_;
  std::unique_ptr<coordinator::Server> server_;
  std::vector<std::unique_ptr<Participant>> members_;  // two workers, a summer
};

TEST_F(ObserverTest, EveryMemberRecordsStopsAndSends) {
  begin_job();
  for (uint64_t i = 0; i < 3; ++i) members_[i]->have_recorded(recording_with(i));
  const auto observer = observe();
  ASSERT_EQ(observer->record(), absl::OkStatus());
  const auto stopped = observer->stop();
  ASSERT_TRUE(stopped.ok()) << stopped.status();
  EXPECT_EQ(stopped->plan.workers, 2u);
  ASSERT_EQ(stopped->seats.size(), 3u);
  for (const Observer::Seat& seat : stopped->seats) {
    EXPECT_TRUE(seat.present);
    EXPECT_EQ(seat.member, seat.seat);
    const auto recording = observer->fetch(seat.seat, kPatience);
    ASSERT_TRUE(recording.ok()) << recording.status();
    EXPECT_EQ(recording->events, recording_with(seat.seat).events);
    EXPECT_TRUE(members_[seat.seat]->await_orders({TraceOrder::kRecord, TraceOrder::kStop, TraceOrder::kSend}));
  }
}

TEST_F(ObserverTest, AMemberThatDoesNotAnswerDelaysNoOther) {
  begin_job();
  members_[1]->have_recorded(recording_with(1));
  const auto observer = observe();
  ASSERT_EQ(observer->record(), absl::OkStatus());
  ASSERT_TRUE(observer->stop().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(observer->fetch(0, absl::Milliseconds(50)).status()));
  EXPECT_TRUE(observer->fetch(1, kPatience).ok());
}

TEST_F(ObserverTest, WaitsUntilTheJobHasBegun) {
  const auto observer = observe();
  std::thread others([this] { begin_job(); });
  EXPECT_EQ(observer->record(), absl::OkStatus());
  others.join();
  EXPECT_TRUE(members_[2]->await_orders({TraceOrder::kRecord}));
}

TEST_F(ObserverTest, AnInterruptEndsTheWait) {
  const auto observer = observe();
  std::thread impatient([&] { observer->interrupt(); });
  EXPECT_TRUE(absl::IsCancelled(observer->record()));
  impatient.join();
}

TEST_F(ObserverTest, ReportsOfStepsAreForwarded) {
  begin_job();
  const auto observer = observe();
  ASSERT_EQ(observer->record(), absl::OkStatus());
  members_[0]->client().report({42, 1 << 20, 1.5});
  Observer::Progress progress;
  while (progress.steps == 0) {
    const auto news = observer->wait(kPatience);
    ASSERT_TRUE(news.ok()) << news.status();
    progress = *news;
  }
  EXPECT_EQ(progress.steps, 42u);
}

TEST_F(ObserverTest, ASecondObserverIsRefusedUntilTheFirstIsGone) {
  begin_job();
  auto first = observe();
  ASSERT_EQ(first->record(), absl::OkStatus());
  const auto second = Observer::join(system_.env(), join_);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(second.status().message(), HasSubstr("another observer traces this job"));
  first.reset();
  EXPECT_TRUE(members_[2]->await_orders({TraceOrder::kRecord, TraceOrder::kForget}));
  EXPECT_EQ(observe()->record(), absl::OkStatus());
}

TEST_F(ObserverTest, SummaryIsReadBesideATrace) {
  const auto early = Observer::read_summary(system_.env(), join_);
  ASSERT_TRUE(early.ok()) << early.status();
  EXPECT_THAT(*early, HasSubstr("\"steps\": 0"));
  begin_job();
  const auto observer = observe();
  ASSERT_EQ(observer->record(), absl::OkStatus());
  for (int reader = 0; reader < 2; ++reader) {
    const auto summary = Observer::read_summary(system_.env(), join_);
    ASSERT_TRUE(summary.ok()) << summary.status();
    EXPECT_THAT(*summary, HasSubstr("\"epoch\": 1"));
  }
  EXPECT_TRUE(observer->stop().ok());
  join_.token = "another";
  EXPECT_TRUE(absl::IsPermissionDenied(Observer::read_summary(system_.env(), join_).status()));
}

TEST_F(ObserverTest, AnObserverNeedsTheToken) {
  begin_job();
  join_.token = "another";
  EXPECT_TRUE(absl::IsPermissionDenied(Observer::join(system_.env(), join_).status()));
}

TEST_F(ObserverTest, AMissingCoordinatorIsAnError) {
  join_.coordinator.port = 1;
  const absl::Status status = Observer::join(system_.env(), join_).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr("127.0.0.1:1"));
}

TEST_F(ObserverTest, ALeavingMemberWaitsUntilItsTraceIsFetched) {
  begin_job();
  for (uint64_t i = 0; i < 3; ++i) members_[i]->have_recorded(recording_with(i));
  const auto observer = observe();
  ASSERT_EQ(observer->record(), absl::OkStatus());
  std::thread first([this] { members_[0]->leave(); });
  std::thread second([this] { members_[1]->leave(); });
  while (true) {
    const auto progress = observer->wait(kPatience);
    ASSERT_TRUE(progress.ok()) << progress.status();
    if (progress->ending) break;
  }
  ASSERT_TRUE(observer->stop().ok());
  for (uint32_t seat = 0; seat < 3; ++seat) EXPECT_TRUE(observer->fetch(seat, kPatience).ok()) << seat;
  observer->close();
  first.join();
  second.join();
  EXPECT_TRUE(members_[2]->await_finished());
  EXPECT_EQ(server_->wait(), absl::OkStatus());
}

TEST_F(ObserverTest, MembersWaitForAnObserverForALimitedTime) {
  begin_job();
  const auto observer = observe();
  ASSERT_EQ(observer->record(), absl::OkStatus());
  std::thread first([this] { members_[0]->leave(); });
  members_[1]->leave();
  first.join();
  EXPECT_EQ(server_->wait(), absl::OkStatus());
  EXPECT_TRUE(absl::IsUnavailable(observer->stop().status()));
}

}  // namespace
}  // namespace gleaner
