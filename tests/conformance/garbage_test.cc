// What is sent by strangers who do not speak the protocol, over a plain socket.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "tests/conformance/rig.h"

namespace gleaner::transport {
namespace {

using ::testing::HasSubstr;

class Garbage : public ::testing::Test {
 protected:
  void SetUp() override {
    rig_ = all_transports()[0].make(system_.env(), absl::Seconds(1), absl::Seconds(10));
    descriptor_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(rig_->address.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  void TearDown() override { close(descriptor_); }

  void send_bytes(ConstBytes bytes) {
    ASSERT_EQ(send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void send_header(wire::Header header) { send_bytes(std::as_bytes(std::span(&header, 1))); }
  // Sends garbage; the peer is closed with a message that has `part`, and others can still connect.
  void expect_closed(const std::string& part) {
    ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.closed.size() == 1; }));
    EXPECT_THAT(std::string(rig_->server_end.closed[0].message()), HasSubstr(part));
    EXPECT_NE(rig_->connected().first, nullptr);
  }

  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  std::unique_ptr<Rig> rig_;
  int descriptor_ = -1;
};

TEST_F(Garbage, AnotherProtocol) {
  const std::string request = "GET / HTTP/1.1\r\nHost: example\r\nUser-Agent: somebody else entirely\r\n\r\n";
  send_bytes(std::as_bytes(std::span(request)));
  expect_closed("another protocol");
}

TEST_F(Garbage, AnotherVersion) {
  wire::Header header;
  header.type = wire::FrameType::kHello;
  wire::seal(header, {});
  header.version = 9;
  send_header(header);
  expect_closed("version 9, this side version 1");
}

TEST_F(Garbage, AFlippedBit) {
  wire::Header header;
  header.type = wire::FrameType::kHello;
  wire::seal(header, {});
  header.tensor ^= 4;
  send_header(header);
  expect_closed("checksum");
}

TEST_F(Garbage, ASumBeforeTheHandshake) {
  wire::Header header;
  header.type = wire::FrameType::kPush;
  header.job = kJob;
  wire::seal(header, {});
  send_header(header);
  expect_closed("expected HELLO");
}

TEST_F(Garbage, ALargePayloadBeforeTheHandshake) {
  wire::Header header;
  header.type = wire::FrameType::kHello;
  const std::vector<std::byte> payload(1 << 20);
  wire::seal(header, payload);
  send_header(header);
  expect_closed("at most 512");
}

TEST_F(Garbage, RandomBytes) {
  std::mt19937_64 random(17);
  std::vector<std::byte> bytes(4096);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  send_bytes(bytes);
  expect_closed("another protocol");
}

TEST_F(Garbage, Silence) {
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsDeadlineExceeded(rig_->server_end.closed[0])) << rig_->server_end.closed[0];
}

}  // namespace
}  // namespace gleaner::transport
