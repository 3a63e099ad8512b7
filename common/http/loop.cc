#include "common/http/loop.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <exception>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/limits.h"
#include "common/base/listening.h"
#include "common/http/connection.h"

namespace gleaner::http {
namespace {

constexpr std::chrono::milliseconds kAcceptAgain(100);  // after a failure, such as a lack of file descriptors
constexpr std::chrono::seconds kFarewell(5);

Answer answer_of(const Handler& handler, const std::string& body) {
  try {
    return handler(body);
  } catch (const std::exception& error) {
    return plain(500, absl::StrCat("internal error: ", error.what()));
  }
}

// Gives the descriptor to a socket or acceptor of Asio.
template <typename Socket>
boost::system::error_code give(Descriptor from, Socket& to) {
  int family = AF_INET;
  socklen_t size = sizeof family;
  ::getsockopt(from.get(), SOL_SOCKET, SO_DOMAIN, &family, &size);
  boost::system::error_code error;
  to.assign(family == AF_INET6 ? boost::asio::ip::tcp::v6() : boost::asio::ip::tcp::v4(), from.get(), error);
  if (!error) from.release();
  return error;
}

}  // namespace

Loop::Loop(Limits limits, Routes routes)
    : limits_(limits),
      routes_(std::move(routes)),
      more_calls_(handlers_.get_executor()),
      acceptor_(context_),
      timer_(context_) {}

absl::Status Loop::listen(Descriptor listener) {
  const boost::system::error_code error = give(std::move(listener), acceptor_);
  if (error) return exhausted("can't wait for connections", error.value());
  accept();
  return absl::OkStatus();
}

void Loop::run() {
  context_.run();
  more_calls_.reset();
}

void Loop::close() {
  closing_ = true;
  boost::asio::post(context_, [this] { begin_to_close(); });
}

void Loop::begin_to_close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (const std::shared_ptr<Connection>& each : Connections(connections_)) {
    if (!each->is_answering()) each->abort();
  }
  timer_.cancel();
  if (connections_.empty()) return;
  timer_.expires_after(kFarewell);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    for (const std::shared_ptr<Connection>& each : Connections(connections_)) each->abort();
  });
}

void Loop::accept() {
  acceptor_.async_wait(boost::asio::socket_base::wait_read, [this](boost::system::error_code error) {
    if (closing_) return;
    if (error) return accept_later();
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    Descriptor peer(
        ::accept4(acceptor_.native_handle(), reinterpret_cast<sockaddr*>(&name), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!peer.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
      return accept_later();
    }
    const auto address = to_address(name, size);
    if (peer.valid() && address.ok()) admit(std::move(peer), address->host);
    accept();
  });
}

void Loop::accept_later() {
  timer_.expires_after(kAcceptAgain);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error && !closing_) accept();
  });
}

void Loop::admit(Descriptor peer, const std::string& host) {
  boost::asio::ip::tcp::socket socket(context_);
  if (give(std::move(peer), socket)) return;
  if (connections_.size() >= limits_.connections) next_to_leave()->abort();
  connections_.push_back(std::make_shared<Connection>(*this, std::move(socket), host));
  connections_.back()->start();
}

// Returns the connection without a request for the longest time, among those of the host that has the most.
std::shared_ptr<Connection> Loop::next_to_leave() const {
  absl::flat_hash_map<std::string, size_t> by_host;
  for (const auto& each : connections_) ++by_host[each->host()];
  return *std::max_element(connections_.begin(), connections_.end(), [&by_host](const auto& a, const auto& b) {
    return by_host[a->host()] < by_host[b->host()];
  });
}

void Loop::touch(const Connection& connection) {
  const auto at = std::find_if(connections_.begin(), connections_.end(),
                               [&connection](const auto& each) { return each.get() == &connection; });
  connections_.splice(connections_.end(), connections_, at);
}

void Loop::remove(const Connection& connection) {
  connections_.remove_if([&connection](const auto& each) { return each.get() == &connection; });
  std::erase_if(waiting_, [&connection](const auto& each) { return each.get() == &connection; });
  if (closing_ && connections_.empty()) timer_.cancel();
}

void Loop::hold(Connection& connection, size_t bytes) {
  held_bytes_ += bytes;
  const auto weight = [&connection](const std::shared_ptr<Connection>& each) {
    return each.get() == &connection && connection.is_answering() ? 0 : each->held_bytes();
  };
  while (held_bytes_ > limits_.held_bytes) {
    const std::shared_ptr<Connection> heaviest =
        *std::max_element(connections_.begin(), connections_.end(),
                          [&weight](const auto& a, const auto& b) { return weight(a) < weight(b); });
    if (weight(heaviest) <= limits_.held_bytes / limits_.connections) return;
    if (heaviest.get() == &connection) return connection.refuse_for_room();
    heaviest->abort();
  }
}

void Loop::call(std::shared_ptr<Connection> connection) {
  waiting_.push_back(std::move(connection));
  call_next();
}

void Loop::call_next() {
  if (calling_ || waiting_.empty()) return;
  calling_ = true;
  std::shared_ptr<Connection> connection = std::move(waiting_.front());
  waiting_.pop_front();
  std::string body = connection->take_body();
  // The guard keeps run() from returning before the answer is there.
  boost::asio::post(handlers_, [this, connection = std::move(connection), body = std::move(body),
                                guard = boost::asio::make_work_guard(context_)]() mutable {
    Answer answer = closing_ ? plain(503, "going away") : answer_of(connection->handler(), body);
    const size_t body_bytes = std::exchange(body, {}).size();
    boost::asio::post(context_,
                      [this, connection = std::move(connection), body_bytes, answer = std::move(answer)]() mutable {
                        on_called(*connection, body_bytes, std::move(answer));
                      });
  });
}

void Loop::on_called(Connection& connection, size_t body_bytes, Answer answer) {
  calling_ = false;
  release(body_bytes);
  connection.on_answer(std::move(answer));
  call_next();
}

}  // namespace gleaner::http
