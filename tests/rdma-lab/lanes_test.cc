// Tests of connections over several ports (lanes): the distribution of bytes over ports, and failures of ports. Run
// this only in a separate guest with two wires (tests/rdma-lab/guest --second).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/rdma-lab/commands.h"
#include "tests/rdma-lab/pair.h"

namespace gleaner::transport::rdma {
namespace {

constexpr size_t kBytes = 256 << 10;

uint64_t bytes_out_of(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/statistics/tx_bytes");
  uint64_t bytes = 0;
  file >> bytes;
  return bytes;
}

class RdmaLanes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lab_devices("GLEANER_TEST_RDMA_DEVICE").size() < 2) GTEST_SKIP() << "no second RDMA device on each side";
    options_.stream.keep_alive = {.ping_after = absl::Milliseconds(300), .idle_deadline = absl::Seconds(10)};
  }
  void TearDown() override {
    for (const char* name : {"near", "near2"}) {
      (void)std::system(absl::StrCat("tc qdisc del dev ", name, " root 2>/dev/null").c_str());
    }
  }

  // Makes a connection, and waits until both sides have `lanes` more lanes. Returns the client's end, or null.
  transport::Connection* connected(Pair& pair, uint64_t lanes = 2) {
    const uint64_t before = pair.server->adapter_counters().lanes;
    const uint64_t ours = pair.client->adapter_counters().lanes;
    transport::Connection* const client = pair.connected();
    if (client == nullptr) return nullptr;
    const bool made = pair.poll_until([&] {
      return pair.server->adapter_counters().lanes == before + lanes &&
             pair.client->adapter_counters().lanes == ours + lanes;
    });
    return made ? client : nullptr;
  }

  // Sends a frame with a unique pattern, so that the test detects a payload in the wrong place.
  void send(transport::Connection& connection, uint64_t step, size_t bytes = kBytes) {
    connection.send(push(step), payload_of(step, bytes));
  }
  Buffer payload_of(uint64_t step, size_t bytes) {
    Buffer payload = pool_.take(bytes);
    for (size_t i = 0; i < bytes; ++i) payload.bytes()[i] = static_cast<std::byte>((i >> 7) * 31 + step * 7 + i);
    return payload;
  }
  // Expects that the received frames are the first ones that were sent, in order.
  void expect_right(const End& end, size_t bytes = kBytes) {
    for (size_t i = 0; i < end.received.size(); ++i) {
      ASSERT_EQ(end.received[i].header.step, i);
      const Buffer expected = payload_of(i, bytes);
      ASSERT_TRUE(std::equal(expected.bytes().begin(), expected.bytes().end(), end.received[i].payload.begin(),
                             end.received[i].payload.end()))
          << "frame " << i;
    }
  }

  // Sends frames until both ends are closed, and runs `command` after the fifth. Expects that all received frames are
  // right.
  void push_until_closed(Pair& pair, transport::Connection* client, const std::string& command) {
    uint64_t step = 0;
    bool done = false;
    const absl::Time begin = absl::Now();
    while (pair.client_end.closed.empty() || pair.server_end.closed.empty()) {
      ASSERT_LT(absl::Now() - begin, absl::Seconds(60)) << "neither side may hang";
      pair.poll_both();
      if (pair.client_end.closed.empty() && client->queued_bytes() < 16 * kBytes &&
          pair.server_end.received.size() < 200) {
        send(*client, step++);
      }
      if (pair.server_end.received.size() >= 5 && !std::exchange(done, true)) run(command);
    }
    EXPECT_TRUE(done);
    expect_right(pair.server_end);
    EXPECT_EQ(pool_.bytes_in_use(), 0u);
    EXPECT_EQ(pair.server_end.pool.bytes_in_use(), 0u);
    pair.server_end.received.clear();
  }

  // After one of two ports has failed, expects that the next connection uses the other port and makes no lanes.
  void expect_the_next_has_no_lane(Pair& pair) {
    const uint64_t lanes = pair.client->adapter_counters().lanes;
    transport::Connection* const next = pair.connected();
    ASSERT_NE(next, nullptr) << "the next connection uses the working port";
    for (uint64_t step = 0; step < 20; ++step) send(*next, step);
    ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() == 20; }));
    expect_right(pair.server_end);
    EXPECT_EQ(pair.client->adapter_counters().lanes, lanes) << "the failed port is avoided";
  }

  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  Options options_;
  BufferPool pool_;
};

// Both adapters report the same speed here, so the split must follow the bandwidth that the wires really have.
TEST_F(RdmaLanes, PayloadsUseBothWiresInProportionToTheirBandwidth) {
  run("tc qdisc add dev near root tbf rate 20mbit burst 64kb limit 4mb");
  run("tc qdisc add dev near2 root tbf rate 60mbit burst 64kb limit 4mb");
  Pair pair(system_.env(), options_);
  transport::Connection* const client = connected(pair);
  ASSERT_NE(client, nullptr);
  constexpr size_t kFrames = 320;
  for (uint64_t step = 0; step < kFrames; ++step) send(*client, step);
  // Leaves out the first frames, before the bandwidths are known, and the last ones, when one wire has nothing left to
  // send.
  const auto sent_when = [&](size_t came) {
    EXPECT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() >= came; }));
    return std::array{static_cast<double>(bytes_out_of("near")), static_cast<double>(bytes_out_of("near2"))};
  };
  const auto begin = sent_when(60);
  const auto end = sent_when(260);
  const std::array<double, 2> sent = {end[0] - begin[0], end[1] - begin[1]};
  sent_when(kFrames);
  expect_right(pair.server_end);
  std::printf("by the wire with three times the bandwidth: %.2f times the bytes\n", sent[1] / sent[0]);
  EXPECT_GT(sent[0] + sent[1], 150.0 * kBytes);
  EXPECT_NEAR(sent[1] / sent[0], 3, 0.75);
}

TEST_F(RdmaLanes, BothDirectionsAtOnceWithSmallFramesBetween) {
  Pair pair(system_.env(), options_);
  transport::Connection* const client = connected(pair);
  ASSERT_NE(client, nullptr);
  transport::Connection* const server = pair.server_end.connections.back();
  const std::array<uint64_t, 2> before = {bytes_out_of("near2"), bytes_out_of("far2")};
  constexpr size_t kFrames = 300;
  const auto size_of = [](uint64_t step) { return step % 3 == 0 ? size_t{100} : 20'000 + step * 300; };
  for (uint64_t step = 0; step < kFrames; ++step) {
    send(*client, step, size_of(step));
    send(*server, step, size_of(step));
  }
  ASSERT_TRUE(pair.poll_until(
      [&] { return pair.server_end.received.size() == kFrames && pair.client_end.received.size() == kFrames; }));
  for (const End* end : {&pair.server_end, &pair.client_end}) {
    for (uint64_t step = 0; step < kFrames; ++step) {
      ASSERT_EQ(end->received[step].header.step, step) << "the frames arrive in order";
      const Buffer expected = payload_of(step, size_of(step));
      ASSERT_TRUE(std::equal(expected.bytes().begin(), expected.bytes().end(), end->received[step].payload.begin(),
                             end->received[step].payload.end()));
    }
  }
  EXPECT_GT(bytes_out_of("near2"), before[0] + (1 << 20));
  EXPECT_GT(bytes_out_of("far2"), before[1] + (1 << 20));
}

TEST_F(RdmaLanes, AWarmJobRegistersNothingOnAnyLane) {
  Pair pair(system_.env(), options_);
  transport::Connection* const client = connected(pair);
  ASSERT_NE(client, nullptr);
  pair.server_end.keep_frames = false;
  size_t seen = 0;
  pair.server_end.when_frame = [&](transport::Connection&, const wire::Header&) { ++seen; };
  std::vector<Buffer> payloads;
  for (uint64_t i = 0; i < 8; ++i) payloads.push_back(payload_of(i, kBytes));
  const auto step = [&](size_t until) {
    for (uint64_t i = 0; i < 8; ++i) client->send(push(i), payloads[i]);
    ASSERT_TRUE(pair.poll_until([&] { return seen == until && client->queued_bytes() == 0; }));
  };
  step(8);
  step(16);
  const uint64_t before = pair.client->adapter_counters().registrations;
  EXPECT_EQ(before, 1 + 2 * 8u) << "the slots, and each payload with both adapters";
  for (size_t i = 3; i <= 8; ++i) step(8 * i);
  EXPECT_EQ(pair.client->adapter_counters().registrations, before);
  EXPECT_EQ(pair.client->adapter_counters().copies + pair.server->adapter_counters().copies, 0u);
}

TEST_F(RdmaLanes, ALaneWithoutDeliveryEndsTheConnectionAndTheNextAvoidsIt) {
  Pair pair(system_.env(), options_);
  transport::Connection* const client = connected(pair);
  ASSERT_NE(client, nullptr);
  push_until_closed(pair, client, "tc qdisc add dev near2 root netem loss 100%");
  EXPECT_TRUE(absl::IsUnavailable(pair.client_end.closed[0])) << pair.client_end.closed[0];
  EXPECT_THAT(std::string(pair.client_end.closed[0].message()), ::testing::HasSubstr("lane"));

  expect_the_next_has_no_lane(pair);
  EXPECT_EQ(pair.client_end.closed.size(), 1u);
}

TEST_F(RdmaLanes, AllResourcesOfTheAdaptersAreReleased) {
  const auto resources = [] { return output_of("rdma resource show"); };
  std::string before;
  for (int round = 0; round < 4; ++round) {
    {
      Pair pair(system_.env(), options_);
      for (int i = 0; i < 3; ++i) {
        transport::Connection* const client = connected(pair);
        ASSERT_NE(client, nullptr);
        for (uint64_t step = 0; step < 12; ++step) send(*client, step);
        if (i == 1) {
          client->close(absl::AbortedError("enough"));
          ASSERT_TRUE(
              pair.poll_until([&] { return !pair.client_end.closed.empty() && !pair.server_end.closed.empty(); }));
        }
      }
      // The transports are destroyed while two connections have payloads in flight over both wires and a third is about
      // to ask for its lanes.
      ASSERT_NE(pair.connected(), nullptr);
    }
    if (round == 0) before = resources();  // the connection manager keeps devices open from its first use on
  }
  EXPECT_EQ(resources(), before);
}

// This must be the last test, since Soft-RoCE's queue pair for the connection manager may not survive it.
TEST_F(RdmaLanes, ALanesLinkGoesDown) {
  Pair pair(system_.env(), options_);
  transport::Connection* const client = connected(pair);
  ASSERT_NE(client, nullptr);
  push_until_closed(pair, client, "ip link set near2 down");
  EXPECT_TRUE(absl::IsUnavailable(pair.client_end.closed[0])) << pair.client_end.closed[0];
  expect_the_next_has_no_lane(pair);
}

}  // namespace
}  // namespace gleaner::transport::rdma
