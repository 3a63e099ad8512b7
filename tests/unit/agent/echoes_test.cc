// Tests of echoes between a client and a server, on loopback.
#include "agent/probe/echoes.h"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "agent/probe/measure.h"
#include "agent/probe/proof.h"

namespace gleaner::probe {
namespace {

using testing::HasSubstr;

class EchoesTest : public testing::Test {
 protected:
  using Server = std::function<void(const Socket&)>;

  ~EchoesTest() override { join(); }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  const Clock& clock() const { return *system_.env().clock; }
  absl::Duration deadline() const { return clock().since_start() + absl::Minutes(1); }

  // Returns the address at which a thread accepts one connection and runs `server`.
  Address start(Server server) {
    listener_.emplace(*Socket::listen({"127.0.0.2", 0}));
    thread_ = std::thread([this, run = std::move(server)] {
      absl::StatusOr<Socket> peer = listener_->accept();
      for (; !peer.ok(); peer = listener_->accept()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      run(*peer);
    });
    return *listener_->local_address();
  }
  Socket connect_to(Server server) { return *Socket::connect(start(std::move(server)), clock(), deadline()); }
  // Connects to a server that answers echoes as a server of measurements does. Its status is in `served` after join().
  Socket connect_to_server() {
    return connect_to([this](const Socket& peer) { served = answer_echoes(peer, clock(), deadline()); });
  }
  // Changes each echo by `change` and sends it back, until the last one or the end of the connection.
  Server answering(std::function<void(Echo&)> change) {
    return [this, change = std::move(change)](const Socket& peer) {
      Echo echo;
      while (echo.is_last == 0 && peer.read(&echo, sizeof(echo), clock(), deadline()).ok()) {
        change(echo);
        if (!peer.write(&echo, sizeof(echo), clock(), deadline()).ok()) return;
      }
    };
  }
  const Env& env() const { return system_.env(); }

  absl::Status served = absl::UnknownError("not served");
  int answered = 0;

 private:
  SystemEnv system_{{.component = "test", .level = LogLevel::kOff}};
  std::optional<Socket> listener_;
  std::thread thread_;
};

TEST_F(EchoesTest, ServerAnswersAll) {
  const Socket client = connect_to_server();
  const auto usual = usual_answer_time(client, clock(), deadline());
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_GT(*usual, absl::ZeroDuration());
  EXPECT_LT(*usual, absl::Minutes(1));
  char end = 0;
  EXPECT_TRUE(absl::IsUnavailable(client.read(&end, 1, clock(), deadline()))) << "the server sends nothing more";
  join();
  EXPECT_TRUE(served.ok()) << served;
}

TEST_F(EchoesTest, SlowPathHasFewEchoes) {
  const Socket client = connect_to(answering([this](Echo&) {
    ++answered;
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(kEchoTime));
  }));
  const auto usual = usual_answer_time(client, clock(), deadline());
  ASSERT_TRUE(usual.ok()) << usual.status();
  EXPECT_GE(*usual, kEchoTime);
  join();
  EXPECT_EQ(answered, kLeastEchoes);
}

TEST_F(EchoesTest, WrongAnswerIsAnError) {
  const Socket client = connect_to(answering([](Echo& echo) { echo.number += echo.number == 2 ? 1 : 0; }));
  const absl::Status status = usual_answer_time(client, clock(), deadline()).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("echo 2 has the wrong bytes: number 3, last 0"));
}

TEST_F(EchoesTest, DeadlineEndsTheWaitForAnAnswer) {
  const Socket client = connect_to([this](const Socket& peer) {
    std::array<Echo, 2> echoes;
    (void)peer.read(echoes.data(), sizeof(echoes), clock(), deadline());  // the second one never comes
  });
  const auto usual = usual_answer_time(client, clock(), clock().since_start() + absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(usual.status())) << usual.status();
}

class RefusedEcho : public EchoesTest, public testing::WithParamInterface<std::vector<Echo>> {};

TEST_P(RefusedEcho, EndsTheConnection) {
  const std::vector<Echo> echoes = GetParam();
  const Socket client = connect_to_server();
  ASSERT_TRUE(client.write(echoes.data(), echoes.size() * sizeof(Echo), clock(), deadline()).ok());
  std::vector<Echo> answers(echoes.size());
  EXPECT_FALSE(client.read(answers.data(), answers.size() * sizeof(Echo), clock(), deadline()).ok());
  join();
  EXPECT_TRUE(absl::IsInvalidArgument(served)) << served;
}

std::vector<Echo> too_many() {
  std::vector<Echo> echoes(kMostEchoes + 1);
  for (size_t i = 0; i < echoes.size(); ++i) echoes[i].number = static_cast<uint8_t>(i);
  return echoes;
}

INSTANTIATE_TEST_SUITE_P(Echoes, RefusedEcho,
                         testing::Values(std::vector<Echo>{{0, 1}}, std::vector<Echo>{{0, 0}, {0, 0}},
                                         std::vector<Echo>{{2, 0}}, too_many()));

TEST_F(EchoesTest, OlderVersionIsNamed) {
  const Address peer = start([this](const Socket& client) {
    Hello hello;
    hello.version = 1;
    (void)client.write(&hello, sizeof(hello), clock(), deadline());
    (void)client.read(&hello, 1, clock(), deadline());  // until the client ends the connection
  });
  const absl::Status status = measure_path(env(), peer, "secret", {.most = absl::Minutes(1)}).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("an agent of another version"));
}

TEST(MeasuredPath, OverheadIsAQuarterOfWhatTheNetworkDoesNotTake) {
  MeasuredPath path;
  path.round_trip = absl::Microseconds(100);
  path.answer_time = absl::Microseconds(140);
  EXPECT_EQ(path.overhead(), absl::Microseconds(10));
  path.answer_time = absl::Microseconds(90);
  EXPECT_EQ(path.overhead(), absl::ZeroDuration());
}

}  // namespace
}  // namespace gleaner::probe
