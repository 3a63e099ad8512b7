// Tests of the rdma transport beyond the conformance suite: peers that violate the protocol, memory that can't be
// registered, keys of memory, late writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "absl/time/clock.h"
#include "tests/rdma-lab/pair.h"
#include "tests/rdma-lab/raw_peer.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::HasSubstr;

class Rdma : public ::testing::Test {
 protected:
  void SetUp() override {
    if (lab_host() == nullptr) GTEST_SKIP() << "no RDMA device; tests/rdma-lab/lab has some";
  }
  static Buffer pattern(BufferPool& pool, size_t size, uint64_t seed) {
    Buffer buffer = pool.take(size);
    for (size_t i = 0; i < size; ++i) buffer.bytes()[i] = static_cast<std::byte>((i * 131 + seed * 17) >> 3);
    return buffer;
  }
  static std::string message(const absl::Status& status) { return std::string(status.message()); }
  static ConstBytes bytes_of(const Greeting& greeting) { return std::as_bytes(std::span(&greeting, 1)); }

  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  BufferPool pool_;
};

TEST_F(Rdma, StepsRegisterNothingOnceWarm) {
  Pair pair(system_.env());
  transport::Connection* const client = pair.connected();
  ASSERT_NE(client, nullptr);
  pair.server_end.keep_frames = false;
  size_t seen = 0;
  pair.server_end.when_frame = [&](transport::Connection&, const wire::Header&) { ++seen; };
  const auto step = [&](size_t until) {
    for (uint64_t i = 0; i < 4; ++i) client->send(push(i), pattern(pool_, 100'000 + i * 70'000, i));
    ASSERT_TRUE(pair.poll_until([&] { return seen == until && client->queued_bytes() == 0; }));
  };
  for (size_t i = 1; i <= 3; ++i) step(4 * i);
  const uint64_t client_before = pair.client->adapter_counters().registrations;
  const uint64_t server_before = pair.server->adapter_counters().registrations;
  EXPECT_GT(client_before, 1u);
  for (size_t i = 4; i <= 10; ++i) step(4 * i);
  EXPECT_EQ(pair.client->adapter_counters().registrations, client_before);
  EXPECT_EQ(pair.server->adapter_counters().registrations, server_before);
  EXPECT_EQ(pair.client->adapter_counters().copies + pair.server->adapter_counters().copies, 0u);
}

TEST_F(Rdma, LastingBorrowedMemoryIsRegisteredOnce) {
  Pair pair(system_.env());
  transport::Connection* const client = pair.connected();
  ASSERT_NE(client, nullptr);
  std::vector<std::byte> memory(1 << 20, std::byte{7});
  {
    const Buffer lasting = Buffer::borrow_lasting(memory);
    client->send(push(0), lasting.slice(1, 300'000));
    client->send(push(1), lasting.borrow_part(std::span(memory).subspan(400'001, 300'000)));
    ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() == 2 && client->queued_bytes() == 0; }));
    EXPECT_EQ(pair.client->adapter_counters().registrations, 2u) << "the connection's slots, and the borrowed memory";
    EXPECT_EQ(pair.client->adapter_counters().copies, 0u);
  }
  client->send(push(2), Buffer::borrow(memory));
  ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() == 3; }));
  EXPECT_EQ(pair.client->adapter_counters().copies, 1u) << "memory that is borrowed once is copied and not registered";
  EXPECT_EQ(pair.server_end.received[2].payload, memory);
}

TEST_F(Rdma, WithoutFreeRegistrationsTheErrorGivesAdvice) {
  // The client may register the connection's slots and one payload. For the second payload it can't even register a
  // buffer to copy to.
  Pair pair(system_.env(), {.registrations_allowed = 2}, {});
  transport::Connection* const client = pair.connected();
  ASSERT_NE(client, nullptr);
  const Buffer first = pattern(pool_, 200'000, 0);
  const Buffer second = pattern(pool_, 200'000, 1);
  client->send(push(0), first);
  ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() == 1; }));
  client->send(push(1), second);
  ASSERT_TRUE(pair.poll_until([&] { return pair.client_end.closed.size() == 1; }));
  EXPECT_THAT(message(pair.client_end.closed[0]), HasSubstr("ulimit -l"));
  EXPECT_EQ(pair.server_end.received.size(), 1u);
  EXPECT_TRUE(first.sole_owner());
  EXPECT_TRUE(second.sole_owner());
}

TEST_F(Rdma, UnregisteredMemoryIsCopiedToRegisteredMemory) {
  Pair pair(system_.env(), {.registrations_allowed = 3}, {});
  transport::Connection* const client = pair.connected();
  ASSERT_NE(client, nullptr);
  std::vector<std::byte> memory(200'000, std::byte{3});
  client->send(push(0), Buffer::borrow(memory));  // makes the client register a buffer to copy to
  client->send(push(1), pattern(pool_, 200'000, 1));
  const Buffer third = pattern(pool_, 200'000, 2);
  ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() == 2 && client->queued_bytes() == 0; }));
  const Buffer kept = pool_.take(200'000);  // keeps the block of the second payload in use
  client->send(push(2), third);
  ASSERT_TRUE(pair.poll_until([&] { return pair.server_end.received.size() == 3; }));
  EXPECT_TRUE(std::equal(third.bytes().begin(), third.bytes().end(), pair.server_end.received[2].payload.begin()));
  EXPECT_EQ(pair.client->adapter_counters().copies, 2u);
}

TEST_F(Rdma, PayloadsAreCopiedIntoABufferThatCannotBeRegistered) {
  Pair pair(system_.env());
  transport::Connection* const client = pair.connected();
  ASSERT_NE(client, nullptr);
  // The receiver places payloads in borrowed memory, which is not registered.
  std::vector<std::byte> elsewhere(300'000);
  class Placing : public End {
   public:
    absl::StatusOr<Buffer> on_header(transport::Connection&, const wire::Header&) override {
      return Buffer::borrow(*place);
    }
    std::vector<std::byte>* place = nullptr;
  };
  Placing end;
  end.place = &elsewhere;
  auto server = Transport::create(system_.env(), {}, &end, &pair.job).value();
  const Address address = server->listen({lab_host(), 0}).value();
  ASSERT_TRUE(pair.client->connect(address, {.job = kJob, .member = 3, .secret = pair.job.secret}).ok());
  while (pair.client_end.connections.size() < 2) {
    pair.client->poll(absl::Milliseconds(1));
    server->poll(absl::Milliseconds(1));
  }
  const Buffer payload = pattern(pool_, elsewhere.size(), 5);
  pair.client_end.connections[1]->send(push(0), payload);
  while (end.received.empty()) {
    pair.client->poll(absl::Milliseconds(1));
    server->poll(absl::Milliseconds(1));
  }
  EXPECT_TRUE(std::equal(elsewhere.begin(), elsewhere.end(), payload.bytes().begin()));
  EXPECT_EQ(server->adapter_counters().copies, 1u);
}

TEST_F(Rdma, ALateWriteDoesNotReachAReleasedBuffer) {
  // Several rounds, since it depends on the timing which packet is in flight when the receiver closes the connection.
  for (int round = 0; round < 8; ++round) {
    Pair pair(system_.env());
    std::atomic<bool> stop{false};
    transport::Connection* const client = pair.connected();
    ASSERT_NE(client, nullptr);
    // With two ports, the lanes write the payloads.
    const size_t ports = lab_devices("GLEANER_TEST_RDMA_DEVICE").size();
    const uint64_t lanes = ports > 1 ? ports : 0;
    ASSERT_TRUE(pair.poll_until([&] {
      return pair.client->adapter_counters().lanes == lanes && pair.server->adapter_counters().lanes == lanes;
    }));
    size_t placed = 0;
    pair.server_end.when_header = [&](transport::Connection&, const wire::Header&) { ++placed; };
    const Buffer payload = pattern(pool_, 4 << 20, 1);
    for (uint64_t i = 0; i < 4; ++i) client->send(push(i), payload);
    while (placed < 2) pair.poll_both();
    std::thread writer([&] {
      while (!stop) pair.client->poll(absl::Milliseconds(1));
    });
    absl::SleepFor(absl::Milliseconds(3 * round));
    pair.server_end.connections.at(0)->close(absl::AbortedError("enough"));
    while (pair.server_end.closed.empty()) pair.server->poll(absl::ZeroDuration());
    std::vector<Buffer> again;
    for (size_t i = 0; i < placed; ++i) {
      again.push_back(pair.server_end.pool.take(4 << 20));
      std::fill(again.back().bytes().begin(), again.back().bytes().end(), std::byte{0xee});
    }
    absl::SleepFor(absl::Milliseconds(150));
    for (const Buffer& buffer : again) {
      EXPECT_EQ(std::count(buffer.bytes().begin(), buffer.bytes().end(), std::byte{0xee}), 4 << 20);
    }
    stop = true;
    writer.join();
    EXPECT_EQ(pair.client_end.closed.size(), 1u);
    again.clear();
  }
}

// Tests with peers that violate the protocol.
class RdmaRaw : public Rdma {
 protected:
  // Runs `act` with a peer on a second thread, while this thread polls the server.
  void with_peer(const Greeting& greeting, const std::function<void(RawPeer&)>& act) {
    pair_ = std::make_unique<Pair>(system_.env());
    std::atomic<bool> done{false};
    std::thread thread([&] {
      RawPeer peer(pair_->address, bytes_of(greeting));
      act(peer);
      done = true;
    });
    while (!done) pair_->server->poll(absl::Milliseconds(5));
    thread.join();
    for (int i = 0; i < 200 && pair_->server_end.closed.empty(); ++i) pair_->server->poll(absl::Milliseconds(5));
  }
  void expect_closed(const std::string& part) {
    ASSERT_EQ(pair_->server_end.closed.size(), 1u);
    EXPECT_THAT(message(pair_->server_end.closed[0]), HasSubstr(part));
    EXPECT_TRUE(pair_->server_end.received.empty());
    EXPECT_NE(pair_->connected(), nullptr) << "other peers can still connect";
  }
  // Returns the client's answer to the frame that it received.
  static std::vector<wire::HandshakeFrame> answer(wire::ClientHandshake& client, const std::vector<std::byte>& got) {
    if (got.size() < wire::kHeaderBytes) return {};
    const wire::Header header = wire::decode_header(ConstBytes(got).first<wire::kHeaderBytes>()).value();
    return client.on_frame(header, ConstBytes(got).subspan(wire::kHeaderBytes)).value();
  }
  // Does the client's part of the handshake.
  static void greet(RawPeer& peer, const wire::Secret& secret) {
    wire::ClientHandshake client(kJob, 3, secret, wire::Nonce{4});
    peer.send_frame(client.hello());
    while (!client.done()) {
      const std::vector<std::byte> got = peer.receive();
      ASSERT_FALSE(got.empty());
      for (const wire::HandshakeFrame& frame : answer(client, got)) peer.send_frame(frame);
    }
  }

  const Greeting greeting_{.job = kJob};
  std::unique_ptr<Pair> pair_;
};

TEST_F(RdmaRaw, AnotherVersionIsRefusedWithAReason) {
  Greeting other = greeting_;
  other.version = 9;
  std::string refusal;
  with_peer(other, [&](RawPeer& peer) {
    EXPECT_FALSE(peer.connected());
    refusal = peer.refusal();
  });
  EXPECT_THAT(refusal, HasSubstr("version 2"));
  EXPECT_NE(pair_->connected(), nullptr);
}

TEST_F(RdmaRaw, AnUnknownJobIsRefused) {
  Greeting other = greeting_;
  other.job = 99;
  with_peer(other, [&](RawPeer& peer) {
    ASSERT_TRUE(peer.connected());
    wire::ClientHandshake client(99, 3, pair_->job.secret, wire::Nonce{4});
    peer.send_frame(client.hello());
    for (const wire::HandshakeFrame& frame : answer(client, peer.receive())) peer.send_frame(frame);
    const std::vector<std::byte> got = peer.receive();
    ASSERT_GE(got.size(), wire::kHeaderBytes);
    EXPECT_EQ(wire::decode_header(ConstBytes(got).first<wire::kHeaderBytes>())->type, wire::FrameType::kReject);
  });
  expect_closed("job");
}

TEST_F(RdmaRaw, AMemberOfOneJobCannotUseTheDomainOfAnotherJob) {
  Greeting other = greeting_;
  other.job = 99;  // the greeting names another job than the one whose secret the peer proves to know
  with_peer(other, [&](RawPeer& peer) {
    wire::ClientHandshake client(kJob, 3, pair_->job.secret, wire::Nonce{4});
    peer.send_frame(client.hello());
    for (const wire::HandshakeFrame& frame : answer(client, peer.receive())) peer.send_frame(frame);
    peer.receive();
  });
  expect_closed("another job");
}

TEST_F(RdmaRaw, ATruncatedPacketIsRefused) {
  with_peer(greeting_, [&](RawPeer& peer) {
    const std::vector<std::byte> half(100);
    peer.send(half);
    peer.receive();
  });
  expect_closed("its header says");
}

TEST_F(RdmaRaw, ATruncatedHelloIsRefused) {
  with_peer(greeting_, [&](RawPeer& peer) {
    wire::HandshakeFrame hello = wire::ClientHandshake(kJob, 3, pair_->job.secret, wire::Nonce{4}).hello();
    hello.payload.resize(hello.payload.size() / 2);
    hello.header.payload_crc = 0;
    peer.send_frame(hello);
    peer.receive();
  });
  expect_closed("HELLO");
}

TEST_F(RdmaRaw, AReplayedProofIsRefused) {
  std::vector<wire::HandshakeFrame> recorded;
  with_peer(greeting_, [&](RawPeer& peer) {
    wire::ClientHandshake client(kJob, 3, pair_->job.secret, wire::Nonce{4});
    recorded.push_back(client.hello());
    peer.send_frame(recorded.back());
    for (const wire::HandshakeFrame& frame : answer(client, peer.receive())) {
      recorded.push_back(frame);
      peer.send_frame(frame);
    }
    EXPECT_FALSE(peer.receive().empty());
  });
  ASSERT_EQ(recorded.size(), 2u);
  with_peer(greeting_, [&](RawPeer& peer) {
    for (const wire::HandshakeFrame& frame : recorded) peer.send_frame(frame);
    peer.receive();
    peer.receive();
  });
  expect_closed("secret");
}

TEST_F(RdmaRaw, NoMemoryIsAnnouncedBeforeTheProof) {
  with_peer(greeting_, [&](RawPeer& peer) {
    const RegionItem region{.address = 4096, .bytes = 4096, .key = 1, .index = 0};
    peer.send_item(ItemKind::kRegion, 0, std::as_bytes(std::span(&region, 1)));
    peer.receive();
  });
  expect_closed("before the handshake");
}

TEST_F(RdmaRaw, AnOfferBeforeTheProofGetsNoBuffer) {
  bool asked = false;
  with_peer(greeting_, [&](RawPeer& peer) {
    pair_->server_end.when_header = [&](transport::Connection&, const wire::Header&) { asked = true; };
    wire::Header header = push(0);
    wire::seal_unchecked(header, 100'000);
    peer.send_item(ItemKind::kOffer, 0, std::as_bytes(std::span(&header, 1)));
    peer.receive();
  });
  expect_closed("before the handshake");
  EXPECT_FALSE(asked);
}

// A stranger uses the key of a buffer that was granted to a member of the job.
TEST_F(RdmaRaw, AKeyCannotBeUsedBeforeTheProof) {
  pair_ = nullptr;
  uint64_t address = 0;
  uint32_t key = 0;
  ibv_wc_status before = IBV_WC_SUCCESS;
  ibv_wc_status after = IBV_WC_GENERAL_ERR;
  with_peer(greeting_, [&](RawPeer& peer) {
    greet(peer, pair_->job.secret);
    wire::Header header = push(0);
    wire::seal_unchecked(header, 100'000);
    peer.send_item(ItemKind::kOffer, 0, std::as_bytes(std::span(&header, 1)));
    const std::vector<std::byte> told = peer.receive();
    ASSERT_EQ(told.size(), sizeof(RegionItem));
    RegionItem region;
    std::memcpy(&region, told.data(), sizeof(region));
    address = region.address;
    key = region.key;
    RawPeer stranger(pair_->address, bytes_of(greeting_));
    ASSERT_TRUE(stranger.connected());
    before = stranger.write(address, key);
    after = peer.write(address, key);
  });
  EXPECT_NE(before, IBV_WC_SUCCESS);
  EXPECT_EQ(after, IBV_WC_SUCCESS) << "the key is valid for the member";
}

TEST_F(RdmaRaw, AnUnexpectedGrantIsRefused) {
  with_peer(greeting_, [&](RawPeer& peer) {
    greet(peer, pair_->job.secret);
    const GrantItem grant{.offset = 0, .region = 0};
    peer.send_item(ItemKind::kGrant, 3, std::as_bytes(std::span(&grant, 1)));
    peer.receive();
  });
  expect_closed("does not wait for a grant");
}

TEST_F(RdmaRaw, ARepeatedOfferIsRefused) {
  with_peer(greeting_, [&](RawPeer& peer) {
    greet(peer, pair_->job.secret);
    wire::Header header = push(0);
    wire::seal_unchecked(header, 100'000);
    for (int i = 0; i < 2; ++i) peer.send_item(ItemKind::kOffer, 0, std::as_bytes(std::span(&header, 1)));
    peer.receive();
    peer.receive();
  });
  expect_closed("is not valid");
}

TEST_F(RdmaRaw, ALaneRequiresItsNumber) {
  with_peer(greeting_, [&](RawPeer& peer) {
    greet(peer, pair_->job.secret);
    peer.send_item(ItemKind::kAsk, 0, {});
    const std::vector<std::vector<std::byte>> told = peer.receive_all();
    ASSERT_EQ(told.size(), 2u) << "the peer gets a port and the invitation";
    PortItem port;
    InvitationItem invitation;
    ASSERT_EQ(told[0].size(), sizeof(port));
    ASSERT_EQ(told[1].size(), sizeof(invitation));
    std::memcpy(&port, told[0].data(), sizeof(port));
    std::memcpy(&invitation.request, told[1].data(), sizeof(invitation.request));
    std::memcpy(&invitation.answer, told[1].data() + sizeof(invitation.request), sizeof(invitation.answer));
    const Address lanes{pair_->address.host, port.port};
    const auto ask = [&](const LaneGreeting& greeting) {
      const RawPeer lane(lanes, std::as_bytes(std::span(&greeting, 1)));
      return lane.connected() ? "connected" : lane.refusal();
    };
    EXPECT_THAT(ask({.number = 1, .secret = {}}), HasSubstr("no connection expects"));
    EXPECT_THAT(ask({.number = 1, .secret = invitation.answer}), HasSubstr("no connection expects"));
    EXPECT_THAT(ask({.version = 9, .number = 1, .secret = invitation.request}), HasSubstr("no connection expects"));
    EXPECT_THAT(ask({.number = 0, .secret = invitation.request}), HasSubstr("can't be"));
    EXPECT_THAT(ask({.number = kMostLanes + 1, .secret = invitation.request}), HasSubstr("can't be"));
    const LaneGreeting right{.number = 1, .bits_per_second = 1, .secret = invitation.request};
    const RawPeer lane(lanes, std::as_bytes(std::span(&right, 1)));
    EXPECT_TRUE(lane.connected());
    EXPECT_THAT(ask(right), HasSubstr("can't be")) << "once";
  });
}

TEST_F(RdmaRaw, NoPortsAreAnnouncedBeforeTheProof) {
  with_peer(greeting_, [&](RawPeer& peer) {
    peer.send_item(ItemKind::kAsk, 0, {});
    peer.receive();
  });
  expect_closed("before the handshake");
}

TEST_F(RdmaRaw, UnexpectedPortsAreRefused) {
  with_peer(greeting_, [&](RawPeer& peer) {
    greet(peer, pair_->job.secret);
    const PortItem port;
    peer.send_item(ItemKind::kPort, 0, std::as_bytes(std::span(&port, 1)));
    peer.receive();
  });
  expect_closed("did not request");
}

TEST_F(RdmaRaw, ACompletionOfAPayloadThatWasNotSentIsRefused) {
  with_peer(greeting_, [&](RawPeer& peer) {
    greet(peer, pair_->job.secret);
    peer.send_item(ItemKind::kTaken, 2, {});
    peer.receive();
  });
  expect_closed("was not written");
}

}  // namespace
}  // namespace gleaner::transport::rdma
