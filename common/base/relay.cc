#include "common/base/relay.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <list>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner {
namespace {

constexpr size_t kMostConnections = 64;
constexpr int kAcceptAgainMs = 100;  // after a failure, such as a lack of file descriptors
constexpr absl::Duration kLinger = absl::Seconds(1);

// The bytes that go from one socket to the other.
class Direction {
 public:
  bool wants_input() const { return !ended_ && begin_ == end_; }
  bool wants_output() const { return begin_ != end_; }
  bool is_done() const { return ended_ && begin_ == end_; }

  // Moves the bytes that can be moved now. Returns false if the connection is broken.
  bool move(int from, int to) {
    if (wants_input()) {
      const ssize_t got = ::recv(from, buffer_.data(), buffer_.size(), 0);
      if (got < 0) return is_temporary(errno);
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      ended_ = got == 0;
    }
    if (wants_output()) {
      const ssize_t sent = ::send(to, buffer_.data() + begin_, end_ - begin_, MSG_NOSIGNAL);
      if (sent < 0) return is_temporary(errno);
      begin_ += static_cast<size_t>(sent);
    }
    if (is_done() && !std::exchange(told_, true)) ::shutdown(to, SHUT_WR);
    return true;
  }

 private:
  static bool is_temporary(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

  std::array<char, 16 << 10> buffer_;
  size_t begin_ = 0, end_ = 0;  // the bytes that were received and not sent yet
  bool ended_ = false;          // the sender has ended its side
  bool told_ = false;           // the receiver knows that
};

struct Connection {
  Descriptor peer, server;
  Direction to_server, to_peer;

  bool move() {
    return to_server.move(peer.get(), server.get()) && to_peer.move(server.get(), peer.get()) &&
           !(to_server.is_done() && to_peer.is_done());
  }
};

// Returns what to wait for on `socket`. A socket without events is left out: poll() would return at once for a socket
// whose other end is gone.
pollfd wish(const Descriptor& socket, const Direction& from, const Direction& to) {
  const int events = (from.wants_input() ? POLLIN : 0) | (to.wants_output() ? POLLOUT : 0);
  return {events == 0 ? -1 : socket.get(), static_cast<int16_t>(events), 0};
}

struct Woken {
  bool is_stopped, is_waiting;
};

// Waits until bytes can be moved, `stop` is readable, or a peer waits at `listener`.
Woken wait(int stop, int listener, const std::list<Connection>& connections, int milliseconds) {
  std::vector<pollfd> wishes = {{stop, POLLIN, 0}, {listener, POLLIN, 0}};
  for (const Connection& each : connections) {
    wishes.push_back(wish(each.peer, each.to_server, each.to_peer));
    wishes.push_back(wish(each.server, each.to_peer, each.to_server));
  }
  if (::poll(wishes.data(), wishes.size(), milliseconds) <= 0) return {};
  return {wishes[0].revents != 0, wishes[1].revents != 0};
}

Descriptor connect_to(uint16_t port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  name.sin_port = htons(port);
  const bool begun =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 || errno == EINPROGRESS;
  return begun ? std::move(socket) : Descriptor();
}

// Accepts a connection, if a peer waits. Returns false if none can be accepted for a lack of resources.
bool accept(const Descriptor& listener, uint16_t port, std::list<Connection>& connections) {
  Descriptor peer(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!peer.valid()) return errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
  Descriptor server = connect_to(port);
  if (!server.valid()) return false;
  Connection& connection = connections.emplace_back();
  connection.peer = std::move(peer);
  connection.server = std::move(server);
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Relay>> Relay::start(Descriptor listener, uint16_t port) {
  GLN_ASSIGN_OR_RETURN(std::unique_ptr<Waker> stop, Waker::create());
  return std::unique_ptr<Relay>(new Relay(std::move(listener), port, std::move(stop)));
}

Relay::Relay(Descriptor listener, uint16_t port, std::unique_ptr<Waker> stop)
    : listener_(std::move(listener)), port_(port), stop_(std::move(stop)), thread_([this] { run(); }) {}

Relay::~Relay() {
  stop_->wake();
  thread_.join();
}

void Relay::run() const {
  name_this_thread("gln-relay");
  std::list<Connection> connections;
  bool can_accept = true;
  while (true) {
    const bool has_room = can_accept && connections.size() < kMostConnections;
    const auto [is_stopped, is_waiting] =
        wait(stop_->descriptor(), has_room ? listener_.get() : -1, connections, can_accept ? -1 : kAcceptAgainMs);
    if (is_stopped) break;
    connections.remove_if([](Connection& each) { return !each.move(); });
    can_accept = !is_waiting || accept(listener_, port_, connections);
  }
  const absl::Time end = absl::Now() + kLinger;
  const auto is_over = [](Connection& each) { return !each.move() || each.to_peer.is_done(); };
  for (connections.remove_if(is_over); !connections.empty() && absl::Now() < end; connections.remove_if(is_over)) {
    wait(-1, -1, connections, static_cast<int>(absl::ToInt64Milliseconds(end - absl::Now())) + 1);
  }
}

}  // namespace gleaner
