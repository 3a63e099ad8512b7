// Tests of faults over RDMA: killed peers, interfaces that go down, devices that are removed, lost packets. Run this
// only as root in a separate guest (tests/rdma-lab/lab).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
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
#include "tests/paths.h"
#include "tests/rdma-lab/commands.h"
#include "tests/rdma-lab/pair.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 1 << 20;

// A process of tests/rdma-lab/peer.cc, which is killed when the object is destroyed.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    std::string program = bin_dir() + "/../tests/rdma_peer";
    std::vector<char*> pointers{program.data()};
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&id_, program.c_str(), &actions, nullptr, pointers.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
  }
  ~Process() {
    kill();
    close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Waits for output of the process and returns it.
  std::string read() const {
    std::array<char, 1024> text;
    const ssize_t got = ::read(output_, text.data(), text.size());
    return {text.data(), static_cast<size_t>(std::max<ssize_t>(got, 0))};
  }
  void kill() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
    id_ = -1;
  }

 private:
  pid_t id_ = -1;
  int output_ = -1;
};

// Checks that every byte of a frame's payload is its step's number, as send_next() writes it.
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

const KeepAlive kShort{.ping_after = absl::Milliseconds(300), .idle_deadline = absl::Seconds(4)};

class RdmaFault : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lab_host() == nullptr) GTEST_SKIP() << "no RDMA device; tests/rdma-lab/lab has some";
    options_.stream.keep_alive = kShort;
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
  auto server = Transport::create(system_.env(), options_, &end, &job_).value();
  const Address address = server->listen({lab_host(), 0}).value();
  Process writer({"push", address.host, std::to_string(address.port)});
  ASSERT_TRUE(poll_until(*server, [&] { return end.frames >= 5; }));
  writer.kill();
  ASSERT_TRUE(poll_until(*server, [&] { return end.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(end.closed[0])) << end.closed[0];
  EXPECT_EQ(end.wrong, 0u);
  EXPECT_EQ(end.pool.bytes_in_use(), 0u) << "buffers of incomplete frames are released";
}

TEST_F(RdmaFault, AReceiverIsKilledWhileItIsWrittenTo) {
  Process receiver({"serve", lab_host()});
  const auto port = static_cast<uint16_t>(std::stoi(receiver.read()));
  BufferPool pool;
  End end;
  auto client = Transport::create(system_.env(), options_, &end, nullptr).value();
  ASSERT_TRUE(
      client->connect({lab_host(), port}, {.job = kJob, .member = 3, .secret = job_.secret, .keep_alive = kShort})
          .ok());
  ASSERT_TRUE(poll_until(*client, [&] { return end.connections.size() == 1; }));
  for (uint64_t step = 0; step < 16; ++step) send_next(*end.connections[0], pool, step);
  ASSERT_TRUE(poll_until(*client, [&] { return end.connections[0]->queued_bytes() < 12 * kBytes; }));
  receiver.kill();
  ASSERT_TRUE(poll_until(*client, [&] { return end.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(end.closed[0])) << end.closed[0];
  EXPECT_EQ(pool.bytes_in_use(), 0u);
}

class RdmaLink : public RdmaFault, public ::testing::WithParamInterface<std::string> {
 protected:
  // Pushes frames until both ends are closed. Runs `command` after the first few frames.
  void push_until_closed(const std::string& command) {
    Checking end;
    End client_end;
    BufferPool pool;
    auto client = Transport::create(system_.env(), options_, &client_end, nullptr).value();
    auto server = Transport::create(system_.env(), options_, &end, &job_).value();
    const Address address = server->listen({lab_host(), 0}).value();
    ASSERT_TRUE(
        client
            ->connect(
                address,
                {.job = kJob, .member = 3, .secret = job_.secret, .timeout = absl::Seconds(20), .keep_alive = kShort})
            .ok());
    uint64_t step = 0;
    bool done = false;
    const absl::Time begin = absl::Now();
    while (client_end.closed.empty() || end.closed.empty()) {
      ASSERT_LT(absl::Now() - begin, absl::Seconds(60))
          << "neither side may hang; " << end.frames << " frames, " << client_end.closed.size() << " and "
          << end.closed.size() << " closed";
      client->poll(absl::Milliseconds(1));
      server->poll(absl::Milliseconds(1));
      if (!client_end.connections.empty() && client_end.connections[0]->queued_bytes() < 4 * kBytes) {
        send_next(*client_end.connections[0], pool, step++);
      }
      if (end.frames >= 5 && !std::exchange(done, true)) run(command);
    }
    EXPECT_TRUE(done) << client_end.closed[0];
    EXPECT_EQ(end.wrong, 0u);
    EXPECT_EQ(pool.bytes_in_use(), 0u);
    EXPECT_EQ(end.pool.bytes_in_use(), 0u);
  }
};

// Soft-RoCE's queue pair for the connection manager may not survive this test, so tests/rdma-lab/check makes the
// devices again after each case.
TEST_P(RdmaLink, GoesDownWhileItIsWrittenOver) {
  push_until_closed("ip link set " + GetParam() + " down");
  End end;
  const auto refused = Transport::create(system_.env(), {.devices = {{.device = "rxe_" + GetParam()}}}, &end, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(refused.status())) << refused.status();
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("port 1 of rxe_" + GetParam()))
      << "the error names the port";
}

// The device is removed together with its interface, but only once it is not used any more. The command therefore runs
// in the background.
TEST_P(RdmaLink, IsTakenAwayWhileItIsWrittenOver) { push_until_closed("ip link delete " + GetParam() + " &"); }

INSTANTIATE_TEST_SUITE_P(Link, RdmaLink, ::testing::Values("near", "far"), [](const auto& one) { return one.param; });

TEST_F(RdmaFault, UnusableSettingsAreErrorsWithTheReason) {
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

// The process runs as the user nobody and may lock only 64 KiB.
TEST_F(RdmaFault, ALimitOfLockedMemoryIsAnErrorWithAdvice) {
  const std::string text = Process({"little_memory"}).read();
  EXPECT_THAT(text, HasSubstr("RESOURCE_EXHAUSTED"));
  EXPECT_THAT(text, HasSubstr("65536"));
  EXPECT_THAT(text, HasSubstr("ulimit -l"));
}

TEST_F(RdmaFault, AllResourcesOfTheAdapterAreReleased) {
  const auto resources = [] { return output_of("rdma resource show"); };
  std::string before;
  for (int round = 0; round < 4; ++round) {
    {
      BufferPool pool;
      Pair pair(system_.env(), options_);
      for (int i = 0; i < 3; ++i) {
        transport::Connection* const client = pair.connected();
        ASSERT_NE(client, nullptr);
        for (uint64_t step = 0; step < 4; ++step) send_next(*client, pool, step, 300'000);
        if (i == 0) {
          ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() >= 4; }));
        }
        if (i == 1) {
          client->close(absl::AbortedError("enough"));
          ASSERT_TRUE(
              pair.poll_until([&] { return !pair.client_end.closed.empty() && !pair.server_end.closed.empty(); }));
        }
      }
      const size_t closed = pair.client_end.closed.size();
      ASSERT_TRUE(pair.client->connect(pair.address, {.job = kJob, .member = 3, .secret = {9}}).ok());
      ASSERT_TRUE(pair.poll_until([&] { return pair.client_end.closed.size() > closed; }))
          << "the connection is refused";
      // The transports are destroyed while a connection is open, with payloads in flight.
    }
    if (round == 0) before = resources();  // the connection manager keeps devices open from its first use on
  }
  EXPECT_EQ(resources(), before);
}

// PyTorch's DataLoader forks while gradients are registered. Pages that parent and child share are copied when one of
// them writes, and the adapter must read the parent's copy.
TEST_F(RdmaFault, DataWrittenAfterAForkIsSent) {
  std::vector<std::byte> memory(kBytes, std::byte{1});
  const Buffer lasting = Buffer::borrow_lasting(memory);
  Pair pair(system_.env(), options_);
  transport::Connection* const client = pair.connected();
  ASSERT_NE(client, nullptr);
  client->send(push(0), lasting);
  ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() == 1 && client->queued_bytes() == 0; }));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  std::fill(memory.begin(), memory.end(), std::byte{2});
  client->send(push(1), lasting);
  const bool came = pair.poll_until([&] { return pair.server_end.received.size() == 2; });
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(came);
  EXPECT_EQ(pair.server_end.received[1].payload, memory);
  EXPECT_EQ(pair.client->adapter_counters().copies, 0u);
}

struct Weather {
  const char* name;
  const char* netem;
  bool may_break = false;  // whether connections over RDMA may break
};

class RdmaNetem : public ::testing::TestWithParam<std::tuple<Weather, std::string>> {
 protected:
  void SetUp() override {
    if (lab_host() == nullptr) GTEST_SKIP() << "no RDMA device; tests/rdma-lab/lab has some";
    for (const char* device : {"near", "far"}) {
      run(absl::StrCat("tc qdisc add dev ", device, " root netem ", std::get<0>(GetParam()).netem));
    }
  }
  void TearDown() override {
    if (lab_host() != nullptr) std::system("tc qdisc del dev near root; tc qdisc del dev far root");
  }

  std::unique_ptr<transport::Transport> make(Handler* handler, const char* devices) {
    if (std::get<1>(GetParam()) == "tcp") return tcp::Transport::create(system_.env(), {}, handler, &job_).value();
    return Transport::create(system_.env(), {.devices = lab_devices(devices)}, handler, &job_).value();
  }

  // Sends frames both ways over a new connection. Returns false if the connection broke and reported that; the frames
  // that arrived before must be right.
  bool exchange() {
    BufferPool pool;  // of payloads that transports hold until they go
    Checking server_end, client_end;
    const auto server = make(&server_end, "GLEANER_TEST_RDMA_DEVICE");
    const auto client = make(&client_end, "GLEANER_TEST_RDMA_PEER_DEVICE");
    const Address address = server->listen({lab_host(), 0}).value();
    const auto connection =
        client->connect(address, {.job = kJob, .member = 3, .secret = job_.secret, .timeout = absl::Seconds(20)});
    EXPECT_TRUE(connection.ok()) << connection.status();
    const auto broke = [&] { return !server_end.closed.empty() || !client_end.closed.empty(); };
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    const auto poll_until = [&](auto done) {
      while (!done() && !broke() && absl::Now() < limit) {
        client->poll(absl::Milliseconds(1));
        server->poll(absl::Milliseconds(1));
      }
    };
    poll_until([&] { return !client_end.connections.empty() && !server_end.connections.empty(); });
    if (broke()) return false;
    for (uint64_t step = 0; step < frames_; ++step) {
      const size_t bytes = step % 3 == 0 ? 500 : 32 << 10;
      send_next(*client_end.connections.at(0), pool, step, bytes);
      send_next(*server_end.connections.at(0), pool, step, bytes);
    }
    poll_until([&] { return server_end.frames >= frames_ && client_end.frames >= frames_; });
    EXPECT_EQ(server_end.wrong + client_end.wrong, 0u);
    if (broke()) return false;
    EXPECT_EQ(server_end.frames, frames_);
    EXPECT_EQ(client_end.frames, frames_);
    return true;
  }

  bool may_break() const { return std::get<1>(GetParam()) == "rdma" && std::get<0>(GetParam()).may_break; }

  // Weather that may break connections also makes frames slow.
  const uint64_t frames_ = may_break() ? 10 : 40;
  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  OneJob job_;
};

// When a packet is missing, an RDMA adapter requests it and everything after it again; after seven such retries the
// connection breaks. With reordered packets this happens to Soft-RoCE now and then. The break is then reported, and the
// next connection continues, as in a job. If a quarter of the packets are reordered, every connection may break on a
// loaded machine; the test then only checks that no wrong frame arrived.
TEST_P(RdmaNetem, EveryFrameArrivesWholeAndOnce) {
  const int attempts = std::get<1>(GetParam()) == "rdma" && !may_break() ? 3 : 1;
  bool done = false;
  for (int i = 0; i < attempts && !done; ++i) done = exchange();
  EXPECT_TRUE(done || may_break()) << "the connection broke " << attempts << " times";
}

INSTANTIATE_TEST_SUITE_P(
    Netem, RdmaNetem,
    ::testing::Combine(::testing::Values(Weather{"loss", "loss 1%"}, Weather{"delay", "delay 5ms"},
                                         Weather{"duplication", "duplicate 10%"},
                                         Weather{"reordering", "delay 2ms reorder 2%"},
                                         Weather{"much_reordering", "delay 2ms 1ms reorder 25%", true}),
                       ::testing::Values("rdma", "tcp")),
    [](const auto& one) { return std::string(std::get<0>(one.param).name) + "_" + std::get<1>(one.param); });

}  // namespace
}  // namespace gleaner::transport::rdma
