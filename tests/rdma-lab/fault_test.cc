// What happens to connections over RDMA: killed peers, interfaces that go down, devices that go, packets that get lost.
// As root of a guest of its own only (tests/rdma-lab/lab).
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/transport/tcp/transport.h"
#include "tests/rdma-lab/pair.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 1 << 20;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> piece;
  for (size_t got; (got = fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), got);
  pclose(pipe);
  return text;
}

void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

// Frames whose payload is their step's number all over, and nothing of another.
class Checking : public End {
 public:
  void on_frame(transport::Connection&, const wire::Header& header, Buffer payload) override {
    const std::byte expected{static_cast<uint8_t>(header.step)};
    wrong += std::any_of(payload.bytes().begin(), payload.bytes().end(), [&](std::byte b) { return b != expected; });
    ++frames;
  }
  size_t frames = 0;
  size_t wrong = 0;
};

void send_next(transport::Connection& connection, BufferPool& pool, uint64_t step, size_t bytes = kBytes) {
  Buffer payload = pool.take(bytes);
  std::fill(payload.bytes().begin(), payload.bytes().end(), std::byte{static_cast<uint8_t>(step)});
  connection.send(push(step), std::move(payload));
}

const Patience kShort{.ping_after = absl::Milliseconds(300), .idle_deadline = absl::Seconds(4)};

class RdmaFault : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lab_host() == nullptr) GTEST_SKIP() << "no RDMA device; tests/rdma-lab/lab has some";
    options_.remote.patience = kShort;
  }

  // A process that connects to the port that it reads from `port`, and pushes until it is killed. It is made before
  // anything of verbs has been used here.
  pid_t fork_client(int port_from) {
    const pid_t child = fork();
    if (child != 0) return child;
    Address address{lab_host(), 0};
    if (read(port_from, &address.port, sizeof(address.port)) != static_cast<ssize_t>(sizeof(address.port))) _exit(4);
    BufferPool pool;
    End end;
    OneJob job;
    auto client = Transport::create(system_.env(), options_, &end, nullptr).value();
    (void)client->connect(address, {.job = kJob, .member = 3, .secret = job.secret});
    uint64_t step = 0;
    while (end.closed.empty()) {
      client->poll(absl::Milliseconds(1));
      while (!end.connections.empty() && end.connections[0]->queued_bytes() < 8 * kBytes) {
        send_next(*end.connections[0], pool, step++);
      }
    }
    _exit(3);
  }

  template <typename Done>
  static bool poll_until(transport::Transport& transport, Done done, absl::Duration limit = absl::Seconds(30)) {
    const absl::Time end = absl::Now() + limit;
    while (!done() && absl::Now() < end) transport.poll(absl::Milliseconds(5));
    return done();
  }

  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  OneJob job_;
  Options options_;
};

TEST_F(RdmaFault, APeerIsKilledWhileItWrites) {
  Checking end;
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t writer = fork_client(ends[0]);
  auto server = Transport::create(system_.env(), options_, &end, &job_).value();
  const Address address = server->listen({lab_host(), 0}).value();
  ASSERT_EQ(write(ends[1], &address.port, sizeof(address.port)), static_cast<ssize_t>(sizeof(address.port)));
  ASSERT_TRUE(poll_until(*server, [&] { return end.frames >= 5; }));
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  ASSERT_TRUE(poll_until(*server, [&] { return end.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(end.closed[0])) << end.closed[0];
  EXPECT_EQ(end.wrong, 0u);
  EXPECT_EQ(end.pool.bytes_in_use(), 0u) << "buffers of frames that never came whole are back";
}

TEST_F(RdmaFault, AReceiverIsKilledWhileItIsWrittenTo) {
  std::array<int, 2> pipe_ends;
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    End end;
    end.keep_frames = false;
    auto server = Transport::create(system_.env(), options_, &end, &job_).value();
    const Address address = server->listen({lab_host(), 0}).value();
    (void)!write(pipe_ends[1], &address.port, sizeof(address.port));
    for (;;) server->poll(absl::Milliseconds(100));
  }
  uint16_t port = 0;
  ASSERT_EQ(read(pipe_ends[0], &port, sizeof(port)), static_cast<ssize_t>(sizeof(port)));
  BufferPool pool;
  End end;
  auto client = Transport::create(system_.env(), options_, &end, nullptr).value();
  ASSERT_TRUE(client->connect({lab_host(), port}, {.job = kJob, .member = 3, .secret = job_.secret, .patience = kShort}).ok());
  ASSERT_TRUE(poll_until(*client, [&] { return end.connections.size() == 1; }));
  for (uint64_t step = 0; step < 16; ++step) send_next(*end.connections[0], pool, step);
  ASSERT_TRUE(poll_until(*client, [&] { return end.connections[0]->queued_bytes() < 12 * kBytes; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(poll_until(*client, [&] { return end.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(end.closed[0])) << end.closed[0];
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

TEST_F(RdmaFault, AnInterfaceGoesDownWhileItIsWrittenOver) {
  for (const std::string name : {"near", "far"}) {
    Pair pair(system_.env(), options_);
    Checking end;
    auto server = Transport::create(system_.env(), options_, &end, &job_).value();
    const Address address = server->listen({lab_host(), 0}).value();
    ASSERT_TRUE(pair.client->connect(address, {.job = kJob, .member = 3, .secret = job_.secret, .patience = kShort}).ok());
    BufferPool pool;
    uint64_t step = 0;
    const absl::Time begin = absl::Now();
    bool down = false;
    while (pair.client_end.closed.empty() || end.closed.empty()) {
      ASSERT_LT(absl::Now() - begin, absl::Seconds(40)) << name << ": neither side may hang";
      pair.client->poll(absl::Milliseconds(1));
      server->poll(absl::Milliseconds(1));
      if (!pair.client_end.connections.empty() && pair.client_end.connections[0]->queued_bytes() < 4 * kBytes) {
        send_next(*pair.client_end.connections[0], pool, step++);
      }
      if (end.frames >= 5 && !std::exchange(down, true)) run("ip link set " + name + " down");
    }
    EXPECT_EQ(end.wrong, 0u);
    EXPECT_EQ(pool.bytes_in_use(), 0u);
    EXPECT_EQ(end.pool.bytes_in_use(), 0u);
    const auto refused = Transport::create(
        system_.env(), {.devices = {{.device = "rxe_" + name}}}, &pair.client_end, nullptr);
    EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr("port 1 of rxe_" + name)) << "says what is down";
    run("ip link set " + name + " up");
    run("ip route replace 10.77.0.2 dev near src 10.77.0.1 && ip route replace 10.77.0.1 dev far src 10.77.0.2");
    for (int i = 0; i < 100 && output_of("rdma link").find("DOWN") != std::string::npos; ++i) {
      absl::SleepFor(absl::Milliseconds(50));
    }
    EXPECT_NE(pair.connected(), nullptr) << "when it is up again, connections can be made";
  }
}

TEST_F(RdmaFault, ADeviceIsTakenAwayAndComesBack) {
  Checking end;
  End client_end;
  BufferPool pool;
  {
    auto client = Transport::create(system_.env(), options_, &client_end, nullptr).value();
    auto server = Transport::create(system_.env(), options_, &end, &job_).value();
    const Address address = server->listen({lab_host(), 0}).value();
    ASSERT_TRUE(client->connect(address, {.job = kJob, .member = 3, .secret = job_.secret, .patience = kShort}).ok());
    uint64_t step = 0;
    bool gone = false;
    const absl::Time begin = absl::Now();
    while (client_end.closed.empty() || end.closed.empty()) {
      ASSERT_LT(absl::Now() - begin, absl::Seconds(40)) << "neither side may hang";
      client->poll(absl::Milliseconds(1));
      server->poll(absl::Milliseconds(1));
      if (!client_end.connections.empty() && client_end.connections[0]->queued_bytes() < 4 * kBytes) {
        send_next(*client_end.connections[0], pool, step++);
      }
      if (end.frames >= 5 && !std::exchange(gone, true)) run("rdma link delete rxe_near &");
    }
    EXPECT_EQ(end.wrong, 0u);
    EXPECT_EQ(pool.bytes_in_use(), 0u);
    EXPECT_EQ(end.pool.bytes_in_use(), 0u);
  }
}

TEST_F(RdmaFault, WhatCanNotBeUsedIsSaid) {
  const auto message_for = [&](const std::string& devices) {
    Options options;
    options.devices = DeviceChoice::parse(devices).value();
    End end;
    const auto made = Transport::create(system_.env(), options, &end, &job_);
    return made.ok() ? std::string("usable") : std::string(made.status().message());
  };
  EXPECT_EQ(message_for("rxe_far"), "usable");
  EXPECT_EQ(message_for("rxe_far:1:1"), "usable");
  EXPECT_THAT(message_for("rxe_far:1:99"), HasSubstr("no GID with index 99"));
  EXPECT_THAT(message_for("rxe_far:7"), HasSubstr("no port 7"));
  EXPECT_THAT(message_for("mlx5_9"), HasSubstr("no RDMA device 'mlx5_9'"));
}

// A process that may lock 64 KiB only, as nobody.
TEST_F(RdmaFault, WhereMemoryMayNotBeLockedItSaysSo) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit little{64 << 10, 64 << 10};
    setrlimit(RLIMIT_MEMLOCK, &little);
    if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    End end;
    const auto made = Transport::create(system_.env(), {}, &end, nullptr);
    const std::string text = made.status().ToString();
    (void)!write(ends[1], text.data(), text.size());
    _exit(0);
  }
  close(ends[1]);
  std::array<char, 1024> text{};
  (void)!read(ends[0], text.data(), text.size() - 1);
  waitpid(child, nullptr, 0);
  EXPECT_THAT(std::string(text.data()), HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_THAT(std::string(text.data()), HasSubstr("65536"));
  EXPECT_THAT(std::string(text.data()), HasSubstr("ulimit -l"));
}

TEST_F(RdmaFault, NothingOfTheAdapterIsLeftBehind) {
  const auto resources = [] { return output_of("rdma resource show"); };
  std::string before;
  for (int round = 0; round < 4; ++round) {
    {
      Pair pair(system_.env(), options_);
      BufferPool pool;
      for (int i = 0; i < 3; ++i) {
        transport::Connection* const client = pair.connected();
        ASSERT_NE(client, nullptr);
        for (uint64_t step = 0; step < 4; ++step) send_next(*client, pool, step, 300'000);
        if (i == 0) {
          ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() >= 4; }));
        }
        if (i == 1) client->close(absl::AbortedError("enough"));
      }
      pair.job.secret = {9};
      (void)pair.connect();
      pair.poll_until([&] { return pair.client_end.closed.size() >= 2; });
      // One is open, with payloads on the way, when the transports go.
    }
    if (round == 0) before = resources();  // the connection manager keeps devices open from its first use on
  }
  EXPECT_EQ(resources(), before);
}

struct Weather {
  const char* name;
  const char* netem;
};

class RdmaNetem : public ::testing::TestWithParam<std::tuple<Weather, std::string>> {
  void SetUp() override {
    if (lab_host() == nullptr) GTEST_SKIP() << "no RDMA device; tests/rdma-lab/lab has some";
  }
  void TearDown() override {
    if (lab_host() != nullptr) std::system("tc qdisc del dev near root; tc qdisc del dev far root");
  }
};

TEST_P(RdmaNetem, EveryFrameComesWholeAndOnce) {
  const auto& [weather, transport] = GetParam();
  for (const char* device : {"near", "far"}) run(absl::StrCat("tc qdisc add dev ", device, " root netem ", weather.netem));
  const SystemEnv system(LogOptions{"test", LogLevel::kOff});
  OneJob job;
  Checking server_end, client_end;
  BufferPool pool;
  const auto make = [&](Handler* handler) -> std::unique_ptr<transport::Transport> {
    if (transport == "tcp") return tcp::Transport::create(system.env(), {}, handler, &job).value();
    return Transport::create(system.env(), {}, handler, &job).value();
  };
  const auto server = make(&server_end);
  const auto client = make(&client_end);
  const Address address = server->listen({lab_host(), 0}).value();
  ASSERT_TRUE(client->connect(address, {.job = kJob, .member = 3, .secret = job.secret, .timeout = absl::Seconds(20)}).ok());
  const absl::Time limit = absl::Now() + absl::Seconds(60);
  const auto poll_until = [&](auto done) {
    while (!done() && absl::Now() < limit) {
      client->poll(absl::Milliseconds(1));
      server->poll(absl::Milliseconds(1));
    }
  };
  poll_until([&] { return !client_end.connections.empty() && !server_end.connections.empty(); });
  ASSERT_FALSE(server_end.connections.empty()) << "not up in time";
  constexpr uint64_t kFrames = 40;
  for (uint64_t step = 0; step < kFrames; ++step) {
    const size_t bytes = step % 3 == 0 ? 500 : 32 << 10;
    send_next(*client_end.connections[0], pool, step, bytes);
    send_next(*server_end.connections[0], pool, step, bytes);
  }
  poll_until([&] { return server_end.frames >= kFrames && client_end.frames >= kFrames; });
  EXPECT_EQ(server_end.frames, kFrames);
  EXPECT_EQ(client_end.frames, kFrames);
  EXPECT_EQ(server_end.wrong + client_end.wrong, 0u);
  EXPECT_TRUE(server_end.closed.empty() && client_end.closed.empty());
}

INSTANTIATE_TEST_SUITE_P(Netem, RdmaNetem,
                         ::testing::Combine(::testing::Values(Weather{"loss", "loss 1%"}, Weather{"delay", "delay 5ms"},
                                                              Weather{"duplication", "duplicate 10%"},
                                                              Weather{"reordering", "delay 2ms 1ms reorder 25%"}),
                                            ::testing::Values("rdma", "tcp")),
                         [](const auto& one) {
                           return std::string(std::get<0>(one.param).name) + "_" + std::get<1>(one.param);
                         });

}  // namespace
}  // namespace gleaner::transport::rdma
