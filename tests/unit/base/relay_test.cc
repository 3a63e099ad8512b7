#include "common/base/relay.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "common/base/listening.h"

namespace gleaner {
namespace {

Descriptor connect_to(const Descriptor& listener) {
  const SocketAddress target = resolve(local_address(listener).value())->front();
  Descriptor socket(::socket(target.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target.address), target.size), 0);
  return socket;
}

Descriptor accept_from(const Descriptor& listener) {
  pollfd wish{listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&wish, 1, 60'000), 1);
  return Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

void send_all(const Descriptor& socket, std::string text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    ASSERT_GT(sent, 0);
    text.erase(0, static_cast<size_t>(sent));
  }
}

std::string receive_all(const Descriptor& socket) {
  std::string text, piece(4096, '\0');
  for (ssize_t got = 0; (got = ::recv(socket.get(), piece.data(), piece.size(), 0)) > 0;) {
    text.append(piece, 0, static_cast<size_t>(got));
  }
  return text;
}

class RelayTest : public testing::Test {
 protected:
  RelayTest() : server_(listen_on({"127.0.0.1", 0}).value()) {
    Descriptor front = listen_on({"127.0.0.1", 0}).value();
    front_ = Descriptor(::dup(front.get()));
    relay_ = Relay::start(std::move(front), local_address(server_)->port).value();
  }

  const Descriptor server_;
  Descriptor front_;
  std::unique_ptr<Relay> relay_;
};

TEST_F(RelayTest, PassesBytesAndEndsBothWays) {
  const std::string request(1'000'000, 'q');  // more than the buffers of the sockets and the relay hold
  for (int i = 0; i < 3; ++i) {
    const Descriptor peer = connect_to(front_), served = accept_from(server_);
    std::string got;
    std::thread reads([&] { got = receive_all(served); });
    send_all(peer, request);
    ::shutdown(peer.get(), SHUT_WR);
    reads.join();
    EXPECT_EQ(got, request);
    send_all(served, "answer");
    ::shutdown(served.get(), SHUT_WR);
    EXPECT_EQ(receive_all(peer), "answer");
  }
}

TEST_F(RelayTest, ServesManyPeersAtOnce) {
  std::vector<Descriptor> peers, served;
  for (int i = 0; i < 64; ++i) {
    peers.push_back(connect_to(front_));
    served.push_back(accept_from(server_));
  }
  for (size_t i = 64; i-- > 0;) {
    send_all(served[i], std::to_string(i));
    served[i].reset();
    EXPECT_EQ(receive_all(peers[i]), std::to_string(i));
  }
}

TEST_F(RelayTest, PeersAboveTheLimitAreServedLater) {
  std::vector<Descriptor> peers;
  for (int i = 0; i < 65; ++i) peers.push_back(connect_to(front_));
  std::vector<Descriptor> served;
  for (int i = 0; i < 64; ++i) served.push_back(accept_from(server_));
  peers.front().reset();
  for (Descriptor& each : served) each.reset();
  send_all(accept_from(server_), "late");
  EXPECT_EQ(receive_all(peers.back()), "late");
}

TEST_F(RelayTest, PassesOnWhatTheServerHasSentBeforeItEnds) {
  const Descriptor peer = connect_to(front_);
  Descriptor served = accept_from(server_);
  send_all(served, "last words");
  served.reset();
  relay_ = nullptr;
  EXPECT_EQ(receive_all(peer), "last words");
}

TEST_F(RelayTest, SurvivesAServerThatIsGone) {
  ::shutdown(server_.get(), SHUT_RDWR);
  EXPECT_EQ(receive_all(connect_to(front_)), "");
}

}  // namespace
}  // namespace gleaner
