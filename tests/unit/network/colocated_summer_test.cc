// Tests of the summer in a worker's process, over the in-process connection of that worker's session.
#include "comm-lib/network/colocated_summer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace gleaner::network {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Address kAddress{"127.0.0.1", 1234};
constexpr uint64_t kJob = 7;

// A job of one worker, whose colocated summer owns a tensor of two elements.
std::shared_ptr<const plan::Plan> make_colocated_plan() {
  auto plan = std::make_shared<plan::Plan>();
  plan->epoch = 1;
  plan->workers = 1;
  plan->members.push_back({1e9, kAddress.to_string(), 1, {}});
  plan->tensors.push_back({"gradient", 2, DataType::kFloat32, 0, 1});
  plan->partitions.push_back({0, 0, 0, 2 * sizeof(float), 1});
  plan->first_partition = {0, 1};
  return plan;
}

class ColocatedSummerTest : public testing::Test, private transport::Handler {
 protected:
  ColocatedSummerTest()
      : system_({"test", LogLevel::kOff}),
        recorder_(system_.env().clock),
        summer_(system_.env(), {kJob, 0}, &kernels_, &pool_, &recorder_),
        to_summer_(summer_.hub(), this) {
    EXPECT_EQ(summer_.listen(kAddress), absl::OkStatus());
  }
  transport::Connection* connect() { return *to_summer_.connect(kAddress, {.job = kJob, .member = 0}); }
  void poll() {
    for (int round = 0; round < 4; ++round) {
      summer_.poll();
      to_summer_.poll(absl::ZeroDuration());
    }
    EXPECT_FALSE(summer_.pending());
  }
  void push(transport::Connection& connection, const std::vector<float>& values) {
    Buffer payload = pool_.take(values.size() * sizeof(float));
    std::memcpy(payload.bytes().data(), values.data(), payload.size());
    wire::Header header;
    header.type = wire::FrameType::kPush;
    header.job = kJob;
    header.epoch = 1;
    connection.send(header, std::move(payload));
  }

  const kernels::Kernels kernels_ = *kernels::Kernels::choose("");
  SystemEnv system_;
  BufferPool pool_;
  trace::Recorder recorder_;
  ColocatedSummer summer_;
  std::vector<float> result_;
  std::vector<std::string> closed_;  // why connections were closed

 private:
  void on_connected(transport::Connection&) override {}
  absl::StatusOr<Buffer> on_header(transport::Connection&, const wire::Header&) override { return Buffer(); }
  void on_frame(transport::Connection&, const wire::Header& header, Buffer payload) override {
    if (header.type != wire::FrameType::kResult) return;
    result_.resize(payload.size() / sizeof(float));
    std::memcpy(result_.data(), payload.bytes().data(), payload.size());
  }
  void on_closed(transport::Connection&, const absl::Status& status) override {
    closed_.emplace_back(status.message());
  }

 protected:
  transport::inproc::Transport to_summer_;
};

TEST_F(ColocatedSummerTest, SumsForItsOwnSession) {
  summer_.open(0);
  ASSERT_EQ(summer_.prepare(make_colocated_plan()), absl::OkStatus());
  ASSERT_EQ(summer_.commit(1), absl::OkStatus());
  transport::Connection* const connection = connect();
  EXPECT_TRUE(summer_.pending());
  poll();
  EXPECT_TRUE(summer_.idle());
  push(*connection, {3, 4});
  poll();
  EXPECT_THAT(result_, ElementsAre(3, 4));
  EXPECT_FALSE(summer_.idle()) << "the result is not acknowledged yet";
  summer_.close(absl::AbortedError("ranks differ"));
  EXPECT_TRUE(summer_.idle());
  EXPECT_TRUE(summer_.idle_without(0));
}

TEST_F(ColocatedSummerTest, RefusesConnectionsAndPlansUnlessItIsOpen) {
  EXPECT_TRUE(absl::IsFailedPrecondition(summer_.prepare(make_colocated_plan())));
  EXPECT_TRUE(absl::IsFailedPrecondition(summer_.commit(1)));
  EXPECT_EQ(summer_.summer(), nullptr);
  connect();
  poll();
  EXPECT_THAT(closed_, ElementsAre(HasSubstr("this worker's session is not open")));
}

TEST_F(ColocatedSummerTest, RefusesFramesAfterItWasClosed) {
  summer_.open(0);
  transport::Connection* const connection = connect();
  poll();
  summer_.close(absl::AbortedError("ranks differ"));
  push(*connection, {3, 4});
  poll();
  EXPECT_THAT(closed_, ElementsAre(HasSubstr("this worker's session has failed: ranks differ")));
}

TEST_F(ColocatedSummerTest, AnotherPlaceInTheJobClosesConnections) {
  summer_.open(1);
  ASSERT_TRUE(summer_.is_open());
  ASSERT_EQ(summer_.prepare(make_colocated_plan()), absl::OkStatus());
  ASSERT_EQ(summer_.commit(1), absl::OkStatus());
  connect();
  poll();
  EXPECT_THAT(closed_, ElementsAre());
  summer_.open(0);
  poll();
  EXPECT_THAT(closed_, ElementsAre(HasSubstr("another place in the job")));
}

}  // namespace
}  // namespace gleaner::network
