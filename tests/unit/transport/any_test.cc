#include "common/transport/any/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "absl/time/clock.h"
#include "tests/conformance/rig.h"
#include "tests/conformance/stand_in.h"
#include "tests/held_port.h"
#include "tests/jumping_clock.h"

namespace gleaner::transport::any {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kRdma = static_cast<size_t>(Kind::kRdma);
constexpr size_t kTcp = static_cast<size_t>(Kind::kTcp);

class AnyTest : public ::testing::Test {
 protected:
  AnyTest() { env_.clock = &clock_; }

  Option tcp() { return tcp_option(env_, {}, &job_); }
  Option rdma() { return stand_in(env_, Kind::kRdma, {}, &job_); }
  Option without_rdma(absl::Status why) {
    return {Kind::kRdma, [why](Handler*) { return why; }, "", ""};
  }
  std::unique_ptr<Transport> make(const std::vector<Option>& options, const char* preferences, Handler* handler) {
    auto made = Transport::create(env_, options, parse_preferences(preferences).value(), handler);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  void make_both(const char* preferences = "auto") {
    client_ = make({tcp(), rdma()}, preferences, &client_end_);
    server_ = make({tcp(), rdma()}, "auto", &server_end_);
    ASSERT_TRUE(server_->listen({"127.0.0.1", 0}).ok());
    theirs_ = server_->endpoints();
  }
  absl::StatusOr<transport::Connection*> connect(int* context = nullptr) {
    ConnectOptions options = connect_options(job_);
    options.context = context;
    return client_->connect("summer/0", theirs_, options);
  }
  bool poll_until(const std::function<bool()>& done) {
    for (const absl::Time end = absl::Now() + absl::Minutes(1); absl::Now() < end && !done();) {
      client_->poll(absl::Milliseconds(1));
      if (server_ != nullptr) server_->poll(absl::Milliseconds(1));
    }
    return done();
  }
  // Connects. Returns the transport of the connection, or nothing if that failed.
  std::optional<Kind> connected() {
    const size_t before = client_end_.closed.size();
    if (!connect().ok()) return std::nullopt;
    EXPECT_TRUE(poll_until([&] { return !client_end_.connections.empty() || client_end_.closed.size() > before; }));
    if (client_end_.connections.empty()) return std::nullopt;
    return client_end_.connections.back()->kind();
  }
  // Makes the server close the connection.
  void cut() {
    ASSERT_TRUE(poll_until([&] { return !server_end_.connections.empty(); }));
    server_end_.connections.back()->close(absl::AbortedError("cut"));
    ASSERT_TRUE(poll_until([&] { return client_end_.connections.empty() && server_end_.connections.empty(); }));
  }
  Endpoint& theirs(Kind kind) {
    return *std::find_if(theirs_.begin(), theirs_.end(), [kind](const Endpoint& one) { return one.kind == kind; });
  }
  uint64_t fallbacks(Reason why) const { return client_->counters().fallbacks[kRdma][kTcp][static_cast<size_t>(why)]; }

  const SystemEnv system_{LogOptions{"test", LogLevel::kError}};
  Env env_ = system_.env();
  JumpingClock clock_{env_.clock};
  OneJob job_;
  End client_end_, server_end_;
  std::unique_ptr<Transport> client_, server_;
  std::vector<Endpoint> theirs_;
  const HeldPort nobody_;  // no server listens on it
};

TEST_F(AnyTest, ListsItsEndpointsInOrderOfPreference) {
  make_both();
  ASSERT_EQ(theirs_.size(), 2u);
  EXPECT_EQ(theirs_[0].kind, Kind::kRdma);
  EXPECT_EQ(theirs_[1].kind, Kind::kTcp);
  EXPECT_NE(theirs_[0].address.port, 0);
  EXPECT_THAT(server_->endpoints("gpu-1")[0].to_string(), HasSubstr("rdma://gpu-1:"));
}

// A transport that always claims to have work.
class Restless : public StandIn, public Spinner {
 public:
  using StandIn::StandIn;
  bool spin_before_wait(absl::Duration) override { return true; }
  Extensions extensions() override { return {.spinner = this}; }
};

TEST_F(AnyTest, TcpIsServedBesideABusyTransport) {
  const Option restless = {Kind::kRdma,
                           [this](Handler* handler) -> absl::StatusOr<std::unique_ptr<transport::Transport>> {
                             auto real = tcp::Transport::create(env_, {}, handler, &job_);
                             if (!real.ok()) return real.status();
                             return std::make_unique<Restless>(*std::move(real));
                           },
                           "", ""};
  client_ = make({tcp()}, "tcp", &client_end_);
  server_ = make({tcp(), restless}, "auto", &server_end_);
  ASSERT_TRUE(server_->listen({"127.0.0.1", 0}).ok());
  theirs_ = server_->endpoints();
  EXPECT_EQ(connected(), Kind::kTcp);
}

// A transport that notes how it is paced, and says that it uses adapters.
class Extended : public StandIn, public Pacer, public AdapterStatistics {
 public:
  using StandIn::StandIn;
  void pace(double bits_per_second) override { paced = bits_per_second; }
  AdapterCounters adapter_counters() const override { return {.registrations = 1, .copies = 2, .lanes = 3}; }
  Extensions extensions() override { return {.pacer = this, .adapter_statistics = this}; }
  double paced = 0;
};

TEST_F(AnyTest, UsesTheExtensionsOfTransportsThatHaveThem) {
  std::vector<Extended*> extended;
  const auto option = [&](Kind kind) {
    return Option{kind,
                  [&](Handler* handler) -> absl::StatusOr<std::unique_ptr<transport::Transport>> {
                    auto real = tcp::Transport::create(env_, {}, handler, &job_);
                    if (!real.ok()) return real.status();
                    auto made = std::make_unique<Extended>(*std::move(real));
                    extended.push_back(made.get());
                    return made;
                  },
                  "", ""};
  };
  client_ = make({tcp(), rdma()}, "auto", &client_end_);
  client_->pace(1e9);  // the stand-in for rdma has no extensions
  EXPECT_EQ(client_->counters().adapters.lanes, 0u);

  client_ = make({tcp(), option(Kind::kShm), option(Kind::kRdma)}, "auto", &client_end_);
  client_->pace(2e9);
  ASSERT_EQ(extended.size(), 2u);
  EXPECT_EQ(extended[0]->paced, 2e9);
  EXPECT_EQ(extended[1]->paced, 2e9);
  EXPECT_EQ(client_->counters().adapters.registrations, 2u);
  EXPECT_EQ(client_->counters().adapters.copies, 4u);
  EXPECT_EQ(client_->counters().adapters.lanes, 6u);
}

TEST_F(AnyTest, FailsWithATcpThatCantWaitForOtherTransports) {
  const Option bare = {Kind::kTcp, rdma().make, "", ""};  // StandIn has no extensions
  const auto made = Transport::create(env_, {bare, rdma()}, Preferences(), &client_end_);
  EXPECT_TRUE(absl::IsUnimplemented(made.status())) << made.status();
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("tcp can't wait for other transports"));
}

TEST_F(AnyTest, TheBestCommonTransportCarriesFrames) {
  make_both();
  int context = 0;
  const auto connection = connect(&context);
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ((*connection)->context, &context);
  ASSERT_TRUE(poll_until([&] { return client_end_.connections.size() == 1 && server_end_.connections.size() == 1; }));
  EXPECT_EQ(client_end_.connections[0], *connection) << "the handler gets the connection that connect() returned";
  EXPECT_EQ(server_end_.connections[0]->kind(), Kind::kRdma);
  EXPECT_EQ(client_->counters().connections[kRdma], 1u);
  wire::Header header;
  header.type = wire::FrameType::kPush;
  BufferPool pool;
  (*connection)->send(header, pool.take(1000));
  ASSERT_TRUE(poll_until([&] { return server_end_.received.size() == 1; }));
  (*connection)->close(absl::OkStatus());
  ASSERT_TRUE(poll_until([&] { return client_end_.closed.size() == 1 && server_end_.closed.size() == 1; }));
  EXPECT_EQ(client_->counters().connections[kRdma], 0u);
  EXPECT_EQ(server_->counters().connections[kRdma], 0u);
}

TEST_F(AnyTest, PreferencesChangeTheOrder) {
  make_both("tcp,rdma");
  EXPECT_EQ(connected(), Kind::kTcp);
}

TEST_F(AnyTest, AFailedAttemptIsFollowedByTheNext) {
  make_both();
  theirs(Kind::kRdma).address.port = nobody_.port();
  EXPECT_EQ(connected(), Kind::kTcp);
  EXPECT_THAT(client_end_.closed, IsEmpty());
  EXPECT_EQ(fallbacks(Reason::kConnect), 1u);
  cut();
  EXPECT_EQ(connected(), Kind::kTcp);
  EXPECT_EQ(fallbacks(Reason::kConnect), 1u) << "an unchanged fallback is not counted again";
}

TEST_F(AnyTest, TheLastFailureReportsAllAttempts) {
  make_both();
  for (Endpoint& endpoint : theirs_) endpoint.address.port = nobody_.port();
  ASSERT_TRUE(connect().ok());
  ASSERT_TRUE(poll_until([&] { return client_end_.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(client_end_.closed[0]));
  EXPECT_THAT(std::string(client_end_.closed[0].message()),
              ::testing::AllOf(HasSubstr("rdma: can't connect"), HasSubstr("; tcp: can't connect")));
  EXPECT_EQ(fallbacks(Reason::kConnect), 0u) << "no other transport replaced it";
}

TEST_F(AnyTest, ASilentPeerLeavesTimeForTheNextTransport) {
  make_both();
  End silent_end;
  const auto silent = tcp::Transport::create(env_, {}, &silent_end, &job_).value();
  theirs(Kind::kRdma).address = silent->listen({"127.0.0.1", 0}).value();  // this transport is never polled
  ASSERT_TRUE(connect().ok());
  EXPECT_TRUE(poll_until([&] {
    clock_.jump(absl::Seconds(1));
    return !client_end_.connections.empty();
  }));
  EXPECT_EQ(client_end_.connections.at(0)->kind(), Kind::kTcp);
}

TEST_F(AnyTest, ATransportThatBrokeAfterAWhileIsTriedFirstAgain) {
  make_both();
  EXPECT_EQ(connected(), Kind::kRdma);
  clock_.jump(absl::Seconds(11));
  cut();
  ASSERT_EQ(client_end_.closed.size(), 1u) << "the close of an open connection is reported";
  EXPECT_EQ(connected(), Kind::kRdma);
}

TEST_F(AnyTest, ATransportThatBreaksRepeatedlyComesLastForAWhile) {
  make_both();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(connected(), Kind::kRdma) << i;
    cut();
  }
  EXPECT_EQ(connected(), Kind::kTcp);
  EXPECT_EQ(fallbacks(Reason::kBroke), 1u);
  cut();
  clock_.jump(absl::Seconds(61));
  EXPECT_EQ(connected(), Kind::kRdma) << "the transport is tried again after a while";
}

TEST_F(AnyTest, ClosingDuringAnAttemptEndsAllAttempts) {
  make_both();
  theirs(Kind::kRdma).address.port = nobody_.port();
  const auto connection = connect();
  ASSERT_TRUE(connection.ok());
  (*connection)->close(absl::AbortedError("enough"));
  ASSERT_TRUE(poll_until([&] { return client_end_.closed.size() == 1; }));
  EXPECT_EQ(client_end_.closed[0].message(), "enough");
  EXPECT_TRUE(server_end_.connections.empty());
}

TEST_F(AnyTest, AMissingTransportIsSkipped) {
  client_ = make({tcp(), without_rdma(absl::NotFoundError("no device"))}, "auto", &client_end_);
  EXPECT_EQ(fallbacks(Reason::kStart), 0u) << "the user did not ask for the transport";
  client_ = make({tcp(), without_rdma(absl::ResourceExhaustedError("memlock is 64 KiB"))}, "auto", &client_end_);
  EXPECT_EQ(fallbacks(Reason::kStart), 1u) << "the device exists and does not work";
  client_ = make({tcp(), without_rdma(absl::NotFoundError("no device"))}, "rdma,tcp", &client_end_);
  EXPECT_EQ(fallbacks(Reason::kStart), 1u) << "the user asked for the transport";
  server_ = make({tcp(), rdma()}, "auto", &server_end_);
  ASSERT_TRUE(server_->listen({"127.0.0.1", 0}).ok());
  theirs_ = server_->endpoints();
  EXPECT_EQ(connected(), Kind::kTcp);
}

TEST_F(AnyTest, AMissingForcedTransportIsAnError) {
  const auto made = Transport::create(env_, {tcp(), without_rdma(absl::NotFoundError("no device here"))},
                                      parse_preferences("rdma").value(), &client_end_);
  EXPECT_TRUE(absl::IsNotFound(made.status())) << made.status();
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("transport rdma: no device here"));
}

TEST_F(AnyTest, AForcedTransportIsTheOnlyEndpoint) {
  server_ = make({tcp(), rdma()}, "rdma!", &server_end_);
  EXPECT_TRUE(server_->listen({"127.0.0.1", 0}).ok());
  theirs_ = server_->endpoints();
  ASSERT_EQ(theirs_.size(), 1u);
  client_ = make({tcp(), without_rdma(absl::NotFoundError("no device"))}, "auto", &client_end_);
  const auto connection = connect();
  EXPECT_TRUE(absl::IsFailedPrecondition(connection.status()));
  EXPECT_THAT(std::string(connection.status().message()),
              ::testing::AllOf(HasSubstr("no transport in common with summer/0"), HasSubstr("rdma: no device"),
                               HasSubstr("tcp: the peer does not offer it")));
}

}  // namespace
}  // namespace gleaner::transport::any
