// Tests of an inviter and the ports of waiting summers, over real gRPC on loopback.
#include "common/invitation/inviter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/invitation/port.h"
#include "common/proto/proof.h"

namespace gleaner::invitation {
namespace {

const std::string kToken = "token";

class InviterTest : public testing::Test {
 protected:
  InviterTest() : system_({"test", LogLevel::kOff}) {}

  std::unique_ptr<InvitationPort> open(const std::string& token = kToken) {
    auto port = InvitationPort::open(system_.env(), {"127.0.0.1", 0}, token);
    EXPECT_TRUE(port.ok()) << port.status();
    return *std::move(port);
  }

  std::unique_ptr<Inviter> invite(const std::string& job, std::vector<Address> summers) {
    InviterOptions options;
    options.invitation = {job, {"0.0.0.0", 7000}, "", "", std::string(proto::kNonceBytes, 't')};
    options.summers = std::move(summers);
    options.token = kToken;
    auto inviter = Inviter::start(system_.env(), std::move(options), [this](uint32_t count) {
      absl::MutexLock lock(&mutex_);
      counts_.push_back(count);
    });
    EXPECT_TRUE(inviter.ok()) << inviter.status();
    return *std::move(inviter);
  }

  void await_count(uint32_t count) {
    absl::MutexLock lock(&mutex_);
    const auto has_come = [&] { return !counts_.empty() && counts_.back() == count; };
    mutex_.Await(absl::Condition(&has_come));
  }
  std::vector<uint32_t> counts() {
    absl::MutexLock lock(&mutex_);
    return counts_;
  }

  SystemEnv system_;
  absl::Mutex mutex_;
  std::vector<uint32_t> counts_;
};

TEST_F(InviterTest, ASummerServesOneJobAfterTheOther) {
  const auto port = open();
  for (const char* job : {"first", "second"}) {
    const auto inviter = invite(job, {port->address()});
    const auto invitation = port->next();
    ASSERT_TRUE(invitation.has_value());
    EXPECT_EQ(invitation->job, job);
    EXPECT_EQ(invitation->coordinator, (Address{"127.0.0.1", 7000})) << "the host from which the invitation comes";
    EXPECT_EQ(invitation->summer, "127.0.0.1") << "as the inviter has dialed it";
    port->joined();
    port->end(absl::OkStatus());
  }
  EXPECT_TRUE(counts().empty()) << "the job has counted on the summer all the time";
}

TEST_F(InviterTest, SummersThatCannotComeDoNotCount) {
  const auto serving = open(), stranger = open("another token");
  const Address nowhere = open()->address();  // its port is closed again
  const auto first = invite("first", {serving->address()});
  ASSERT_TRUE(serving->next().has_value());
  std::thread next([&] { EXPECT_FALSE(serving->next().has_value()) << "it serves a job already"; });
  const auto second = invite("second", {serving->address(), stranger->address(), nowhere});
  await_count(0);
  EXPECT_EQ(counts(), (std::vector<uint32_t>{2, 1, 0}));
  serving->stop();
  next.join();
}

TEST_F(InviterTest, ASummerThatIsLostIsInvitedAgain) {
  const auto port = open();
  const auto inviter = invite("job", {port->address()});
  ASSERT_TRUE(port->next().has_value());
  port->joined();
  port->end(absl::UnavailableError("lost"));
  EXPECT_TRUE(port->next().has_value());
  await_count(1);
  EXPECT_EQ(counts(), (std::vector<uint32_t>{0, 1}));
}

TEST_F(InviterTest, TheSummerLearnsThatItsInviterIsGone) {
  const auto port = open();
  auto inviter = invite("job", {port->address()});
  ASSERT_TRUE(port->next().has_value());
  absl::Notification gone, gone_already;
  port->on_inviter_gone([&] { gone.Notify(); });
  inviter.reset();
  gone.WaitForNotification();
  port->on_inviter_gone([&] { gone_already.Notify(); });
  EXPECT_TRUE(gone_already.HasBeenNotified());
  port->end(absl::OkStatus());
  inviter = invite("next", {port->address()});
  EXPECT_EQ(port->next()->job, "next");
}

TEST_F(InviterTest, StopEndsTheWait) {
  const auto port = open();
  std::thread thread([&] { EXPECT_FALSE(port->next().has_value()); });
  port->stop();
  thread.join();
}

}  // namespace
}  // namespace gleaner::invitation
