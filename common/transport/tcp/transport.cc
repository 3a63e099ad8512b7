#include "common/transport/tcp/transport.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::tcp {
namespace {

constexpr absl::Duration kCheckEvery = absl::Milliseconds(50);
constexpr size_t kEventsPerPoll = 64;

absl::StatusOr<wire::Nonce> draw_nonce(const Env& env) {
  wire::Nonce nonce;
  GLN_RETURN_IF_ERROR(env.random->fill(nonce));
  return nonce;
}

// `tag` comes back with each event: a connection, or the address of the listener or the waker.
absl::Status watch(int epoll, int operation, int descriptor, uint32_t events, void* tag) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = tag;
  if (epoll_ctl(epoll, operation, descriptor, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "epoll_ctl");
}

uint32_t events_of(const Connection& connection) {
  return connection.wants_write() ? uint32_t{EPOLLIN} | uint32_t{EPOLLOUT} : uint32_t{EPOLLIN};
}

}  // namespace

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : env_(env), options_(options), handler_(handler), jobs_(jobs), last_check_(now()) {}

Transport::~Transport() = default;

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  auto transport = std::unique_ptr<Transport>(new Transport(env, options, handler, jobs));
  transport->epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!transport->epoll_.is_open()) return absl::ErrnoToStatus(errno, "can't make an epoll descriptor");
  GLN_ASSIGN_OR_RETURN(transport->waker_, Waker::create());
  GLN_RETURN_IF_ERROR(
      watch(transport->descriptor(), EPOLL_CTL_ADD, transport->waker_->descriptor(), EPOLLIN, transport->waker_.get()));
  return transport;
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  GLN_ASSIGN_OR_RETURN(listener_, listen_on(address));
  GLN_RETURN_IF_ERROR(watch(descriptor(), EPOLL_CTL_ADD, listener_.descriptor(), EPOLLIN, &listener_));
  return local_address(listener_);
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, draw_nonce(env_));
  GLN_ASSIGN_OR_RETURN(Socket socket, start_connect(address));
  auto connection = std::make_unique<Connection>(
      this, std::move(socket), address.to_string(),
      wire::ClientHandshake(options.job, options.member, options.secret, nonce), std::nullopt, now());
  connection->context = options.context;
  connection->handshake_deadline = now() + options.timeout;
  return adopt(std::move(connection));
}

Connection* Transport::adopt(std::unique_ptr<Connection> connection) {
  Connection* const adopted = connection.get();
  connections_.push_back(std::move(connection));
  adopted->armed = events_of(*adopted);
  const absl::Status status = watch(descriptor(), EPOLL_CTL_ADD, adopted->descriptor(), adopted->armed, adopted);
  if (!status.ok()) adopted->close(status);
  return adopted;
}

size_t Transport::strangers() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(), [](const auto& connection) {
    return connection->peer().accepted && !connection->is_up();
  }));
}

void Transport::accept_all() {
  while (true) {
    Socket socket(accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno != EAGAIN && !std::exchange(accept_failed_, true)) {
        env_.log->error("can't accept connections; raise the limit of open files (ulimit -n)", "reason",
                        std::strerror(errno));
      }
      return;
    }
    accept_failed_ = false;
    const auto nonce = draw_nonce(env_);
    if (!nonce.ok() || strangers() >= options_.max_strangers) continue;  // closes it
    set_no_delay(socket);
    std::string address = peer_address(socket);
    auto connection = std::make_unique<Connection>(this, std::move(socket), std::move(address), std::nullopt,
                                                   wire::ServerHandshake(*jobs_, *nonce), now());
    connection->handshake_deadline = now() + options_.handshake_timeout;
    adopt(std::move(connection));
  }
}

void Transport::mark_dirty(Connection* connection) {
  if (std::exchange(connection->dirty, true)) return;
  dirty_.push_back(connection);
}

void Transport::bury(Connection* connection) { dead_.push_back(connection); }

void Transport::arm(Connection& connection) {
  const uint32_t wanted = events_of(connection);
  if (wanted == connection.armed || connection.is_dead()) return;
  connection.armed = wanted;
  const absl::Status status = watch(descriptor(), EPOLL_CTL_MOD, connection.descriptor(), wanted, &connection);
  if (!status.ok()) connection.close(status);
}

void Transport::flush_dirty() {
  for (size_t i = 0; i < dirty_.size(); ++i) {
    dirty_[i]->dirty = false;
    dirty_[i]->flush();
    arm(*dirty_[i]);
  }
  dirty_.clear();
}

void Transport::poll(absl::Duration timeout) {
  flush_dirty();
  if (!dead_.empty()) timeout = absl::ZeroDuration();
  timeout = std::min(timeout, connections_.empty() ? timeout : kCheckEvery);
  std::array<epoll_event, kEventsPerPoll> events;
  const int milliseconds =
      timeout == absl::InfiniteDuration()
          ? -1
          : static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))));
  const int count = epoll_wait(descriptor(), events.data(), kEventsPerPoll, milliseconds);
  const absl::Duration when = now();
  for (int i = 0; i < count; ++i) {
    void* const tag = events[static_cast<size_t>(i)].data.ptr;
    if (tag == waker_.get()) {
      waker_->clear();
    } else if (tag == &listener_) {
      accept_all();
    } else {
      auto& connection = *static_cast<Connection*>(tag);
      const uint32_t what = events[static_cast<size_t>(i)].events;
      if ((what & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0 && !connection.is_dead()) connection.on_writable(when);
      if ((what & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0 && !connection.is_dead()) connection.on_readable(when);
      arm(connection);
    }
  }
  if (when - last_check_ >= kCheckEvery) check_times();
  flush_dirty();
  remove_dead();
}

void Transport::check_times() {
  last_check_ = now();
  for (size_t i = 0; i < connections_.size(); ++i) connections_[i]->check_time(last_check_);
}

void Transport::remove_dead() {
  while (!dead_.empty()) {
    std::vector<Connection*> dead;
    dead.swap(dead_);
    for (Connection* connection : dead) {
      handler_->on_closed(*connection, connection->status());
      std::erase(dirty_, connection);
      std::erase_if(connections_, [connection](const auto& owned) { return owned.get() == connection; });
    }
  }
}

}  // namespace gleaner::transport::tcp
