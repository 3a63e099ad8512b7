#include "common/transport/tcp/transport.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::tcp {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);
constexpr int kAcceptsPerPoll = 64;

absl::StatusOr<wire::Nonce> draw_nonce(const Env& env) {
  wire::Nonce nonce;
  GLN_RETURN_IF_ERROR(env.random->fill(nonce));
  return nonce;
}

// `tag` comes back with each event: a connection, or the address of the listener, the timer or the waker.
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

int to_milliseconds(absl::Duration timeout) {
  if (timeout > absl::Hours(1)) return 3'600'000;  // returning early is allowed
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))));
}

}  // namespace

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : env_(env), options_(options), handler_(handler), jobs_(jobs), last_tick_(now()) {}

Transport::~Transport() = default;

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  auto transport = std::unique_ptr<Transport>(new Transport(env, options, handler, jobs));
  GLN_RETURN_IF_ERROR(transport->open());
  return transport;
}

absl::Status Transport::open() {
  epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.is_open()) return absl::ErrnoToStatus(errno, "can't make an epoll descriptor");
  GLN_ASSIGN_OR_RETURN(waker_, Waker::create());
  GLN_ASSIGN_OR_RETURN(timer_, make_timer(kTick));
  GLN_RETURN_IF_ERROR(watch(descriptor(), EPOLL_CTL_ADD, waker_->descriptor(), EPOLLIN, waker_.get()));
  return watch(descriptor(), EPOLL_CTL_ADD, timer_.descriptor(), EPOLLIN, &timer_);
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  if (listener_.is_open()) return absl::FailedPreconditionError("this transport listens already");
  GLN_ASSIGN_OR_RETURN(Socket socket, listen_on(address));
  GLN_RETURN_IF_ERROR(watch(descriptor(), EPOLL_CTL_ADD, socket.descriptor(), EPOLLIN, &listener_));
  listener_ = std::move(socket);
  return local_address(listener_);
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, draw_nonce(env_));
  GLN_ASSIGN_OR_RETURN(std::vector<Target> targets, resolve(address));
  auto connection = std::make_unique<Connection>(this, std::move(targets), address.to_string(), options, nonce,
                                                 now() + options.timeout);
  GLN_RETURN_IF_ERROR(connection->connect_next());
  return adopt(std::move(connection));
}

Connection* Transport::adopt(std::unique_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  Connection* const adopted = connections_.back().get();
  watch_again(*adopted);
  return adopted;
}

void Transport::watch_again(Connection& connection) {
  connection.armed = events_of(connection);
  const absl::Status status =
      watch(descriptor(), EPOLL_CTL_ADD, connection.descriptor(), connection.armed, &connection);
  if (!status.ok()) connection.close(status);
}

void Transport::accept_some() {
  for (int i = 0; i < kAcceptsPerPoll; ++i) {
    Socket socket(accept4(listener_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.is_open()) {
      accept_failed_ = false;
      accept(std::move(socket));
      continue;
    }
    if (errno == ECONNABORTED || errno == EINTR) continue;
    if (errno == EAGAIN) return;
    if (!std::exchange(accept_failed_, true)) {
      env_.log->error("can't accept connections; if there are too many open files, raise the limit (ulimit -n)",
                      "reason", std::strerror(errno));
    }
    // It stays readable: not asked for until the next tick, so that poll() does not spin.
    accepting_ = !watch(descriptor(), EPOLL_CTL_MOD, listener_.descriptor(), 0, &listener_).ok();
    return;
  }
}

void Transport::accept(Socket socket) {
  const auto nonce = draw_nonce(env_);
  if (!nonce.ok()) {
    env_.log->error("can't greet a peer", "reason", nonce.status().message());
    return;
  }
  make_room_for_stranger();
  tune(socket);
  std::string address = peer_address(socket);
  adopt(std::make_unique<Connection>(this, std::move(socket), std::move(address), wire::ServerHandshake(*jobs_, *nonce),
                                     now() + options_.handshake_timeout));
}

// Who knows the secret is through in milliseconds; so it is the idlers whom a flood of strangers pushes out.
void Transport::make_room_for_stranger() {
  size_t strangers = 0;
  Connection* oldest = nullptr;
  for (const auto& connection : connections_) {
    if (!connection->peer().accepted || connection->is_up() || connection->is_dead()) continue;
    if (++strangers == 1) oldest = connection.get();
  }
  if (strangers < options_.max_strangers) return;
  oldest->close(absl::ResourceExhaustedError(absl::StrCat(oldest->peer().address, " made room for others: more than ",
                                                          options_.max_strangers,
                                                          " peers have connected and not finished the handshake")));
}

void Transport::listen_again() {
  accepting_ = watch(descriptor(), EPOLL_CTL_MOD, listener_.descriptor(), EPOLLIN, &listener_).ok();
}

void Transport::mark_dirty(Connection* connection) {
  if (!std::exchange(connection->dirty, true)) dirty_.push_back(connection);
}

void Transport::bury(Connection* connection) { dead_.push_back(connection); }

void Transport::arm(Connection& connection) {
  const uint32_t wanted = events_of(connection);
  if (wanted == connection.armed || connection.is_dead()) return;
  connection.armed = wanted;
  const absl::Status status = watch(descriptor(), EPOLL_CTL_MOD, connection.descriptor(), wanted, &connection);
  if (!status.ok()) connection.close(status);
}

void Transport::flush() {
  for (size_t i = 0; i < dirty_.size(); ++i) {
    dirty_[i]->dirty = false;
    dirty_[i]->flush();
    arm(*dirty_[i]);
  }
  dirty_.clear();
}

void Transport::wait(absl::Duration timeout) {
  const int count = epoll_wait(descriptor(), events_.data(), kEventsPerPoll, to_milliseconds(timeout));
  ready_ = static_cast<size_t>(std::max(count, 0));  // interrupted: nothing
}

void Transport::poll(absl::Duration timeout) {
  flush();
  if (ready_ == 0) wait(dead_.empty() ? timeout : absl::ZeroDuration());
  bool tick = false;
  for (size_t i = 0; i < ready_; ++i) {
    // After all else: who has said something by now has not been silent.
    tick = tick || events_[i].data.ptr == &timer_;
    handle(events_[i].data.ptr, events_[i].events);
  }
  ready_ = 0;
  if (tick) on_tick();
  flush();
  remove_dead();
}

void Transport::handle(void* tag, uint32_t events) {
  if (tag == waker_.get()) return waker_->clear();
  if (tag == &listener_) return accept_some();
  if (tag == &timer_) return;
  auto& connection = *static_cast<Connection*>(tag);
  if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0 && !connection.is_dead()) connection.on_writable();
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0 && !connection.is_dead()) connection.on_readable();
  arm(connection);
}

void Transport::on_tick() {
  uint64_t ticks = 0;
  [[maybe_unused]] const ssize_t got = read(timer_.descriptor(), &ticks, sizeof(ticks));
  const absl::Duration when = now();
  const absl::Duration listened = when - last_tick_;
  last_tick_ = when;
  for (size_t i = 0; i < connections_.size(); ++i) connections_[i]->check_time(when, listened);
  if (!accepting_) listen_again();
}

void Transport::pace(double bits_per_second) {
  pace_bits_per_second_ = bits_per_second;
  share_pace();
}

void Transport::share_pace() {
  if (pace_bits_per_second_ <= 0) return;
  const auto has_share = [](const auto& connection) { return connection->peer().accepted && connection->is_up(); };
  const auto sharers = std::count_if(connections_.begin(), connections_.end(), has_share);
  for (const auto& connection : connections_) {
    if (has_share(connection)) connection->pace(pace_bits_per_second_ / static_cast<double>(sharers));
  }
}

void Transport::remove_dead() {
  const bool fewer = !dead_.empty();
  while (!dead_.empty()) {
    burying_.swap(dead_);
    for (Connection* connection : burying_) {
      handler_->on_closed(*connection, connection->status());
      std::erase(dirty_, connection);
      std::erase_if(connections_, [connection](const auto& owned) { return owned.get() == connection; });
    }
    burying_.clear();
  }
  if (fewer) share_pace();
}

}  // namespace gleaner::transport::tcp
