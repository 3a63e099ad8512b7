// Tests of a member's connection, over real gRPC on loopback.
#include "common/member/coordinator_connection.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>

namespace gleaner::member {
namespace {

using Event = Stream::Event;

// Sends a Challenge with the number of the call as protocol, and ends the call after the first received message.
class Challenger final : public v1::Coordinator::Service {
 public:
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::MemberMessage>* stream) override {
    v1::CoordinatorMessage message;
    message.mutable_challenge()->set_protocol(++calls_);
    stream->Write(message);
    v1::MemberMessage answer;
    stream->Read(&answer);
    return {grpc::StatusCode::ABORTED, "enough"};
  }

 private:
  std::atomic<uint32_t> calls_{0};
};

class CoordinatorConnectionTest : public testing::Test {
 protected:
  CoordinatorConnectionTest() {
    int port = 0;
    server_ = grpc::ServerBuilder()
                  .AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port)
                  .RegisterService(&challenger_)
                  .BuildAndStart();
    options_.coordinator = {"127.0.0.1", static_cast<uint16_t>(port)};
    connection_ = std::make_unique<CoordinatorConnection>(options_);
  }
  ~CoordinatorConnectionTest() override {
    connection_ = nullptr;
    server_->Shutdown();
  }

  // Returns the next event. The time limit of the test is the deadline.
  Event next() {
    Event event = Event::kNothing;
    while (event == Event::kNothing) event = connection_->wait(absl::Seconds(1));
    return event;
  }

  Challenger challenger_;
  std::unique_ptr<grpc::Server> server_;
  JoinOptions options_;
  std::unique_ptr<CoordinatorConnection> connection_;
};

TEST_F(CoordinatorConnectionTest, ForwardsMessagesAndTheEnd) {
  connection_->open();
  EXPECT_TRUE(connection_->is_open());
  ASSERT_EQ(next(), Event::kMessage);
  EXPECT_EQ(connection_->message().challenge().protocol(), 1u);
  connection_->write({});
  ASSERT_EQ(next(), Event::kClosed);
  EXPECT_TRUE(absl::IsAborted(connection_->status())) << connection_->status();
  EXPECT_FALSE(connection_->is_open());
}

TEST_F(CoordinatorConnectionTest, MessagesOfADroppedCallAreNotForwarded) {
  connection_->open();
  ASSERT_EQ(next(), Event::kMessage);
  connection_->drop();
  EXPECT_FALSE(connection_->is_open());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(connection_->wait(absl::Milliseconds(10)), Event::kNothing);
}

TEST_F(CoordinatorConnectionTest, TheNextCallOpensAfterTheDroppedCallHasEnded) {
  connection_->open();
  ASSERT_EQ(next(), Event::kMessage);
  connection_->drop();
  connection_->open();
  ASSERT_EQ(next(), Event::kMessage);
  EXPECT_EQ(connection_->message().challenge().protocol(), 2u);
}

TEST_F(CoordinatorConnectionTest, AWaitingCallCanBeDropped) {
  connection_->open();
  ASSERT_EQ(next(), Event::kMessage);
  connection_->drop();
  connection_->open();
  connection_->drop();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(connection_->wait(absl::Milliseconds(10)), Event::kNothing);
  EXPECT_FALSE(connection_->is_open());
}

TEST_F(CoordinatorConnectionTest, UnusableCredentialsCloseIt) {
  options_.ca_file = "/does/not/exist";
  connection_->open();
  ASSERT_EQ(connection_->wait(absl::InfiniteDuration()), Event::kClosed);
  EXPECT_TRUE(absl::IsNotFound(connection_->status())) << connection_->status();
  connection_->open();
  connection_->drop();
  EXPECT_EQ(connection_->wait(absl::ZeroDuration()), Event::kNothing) << "the call was dropped";
}

}  // namespace
}  // namespace gleaner::member
