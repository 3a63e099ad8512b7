#include "common/transport/stream/transport.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::stream {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(50);

int to_milliseconds(absl::Duration timeout) {
  if (timeout > absl::Hours(1)) return 3'600'000;  // poll() may return early
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1))));
}

// Returns a timer that becomes readable once per period.
absl::StatusOr<Descriptor> make_timer(absl::Duration period) {
  Descriptor timer(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  itimerspec ticks{};
  ticks.it_interval = absl::ToTimespec(period);
  ticks.it_value = ticks.it_interval;
  if (!timer.valid() || timerfd_settime(timer.get(), 0, &ticks, nullptr) != 0) {
    return exhausted("can't make a timer", errno);
  }
  return timer;
}

}  // namespace

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : env_(env), options_(options), handler_(handler), jobs_(jobs), last_tick_(now()) {}

Transport::~Transport() = default;

absl::Status Transport::open() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_.valid()) return exhausted("can't make an epoll descriptor", errno);
  GLN_ASSIGN_OR_RETURN(waker_, Waker::create());
  GLN_ASSIGN_OR_RETURN(timer_, make_timer(kTick));
  // Waker and timer are not Sources; handle_events() recognizes them by these addresses.
  for (const auto& [descriptor, tag] :
       {std::pair<int, void*>{waker_->descriptor(), waker_.get()}, {timer_.get(), &timer_}}) {
    epoll_event event{.events = EPOLLIN, .data = {.ptr = tag}};
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) return absl::ErrnoToStatus(errno, "epoll_ctl");
  }
  return absl::OkStatus();
}

absl::Status Transport::watch(int operation, int descriptor, uint32_t events, Source* source) {
  epoll_event event{.events = events, .data = {.ptr = source}};
  if (epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "epoll_ctl");
}

absl::Status Transport::watch_beside(int descriptor, bool* readable) {
  foreign_sources_.push_back(std::make_unique<ForeignSource>(readable));
  return watch(EPOLL_CTL_ADD, descriptor, EPOLLIN, foreign_sources_.back().get());
}

absl::StatusOr<wire::Nonce> Transport::draw_nonce() const {
  wire::Nonce nonce;
  GLN_RETURN_IF_ERROR(env_.random->fill(nonce));
  return nonce;
}

Connection* Transport::adopt(std::unique_ptr<Connection> connection) {
  connections_.push_back(std::move(connection));
  return connections_.back().get();
}

std::optional<wire::ServerHandshake> Transport::greet() {
  const auto nonce = draw_nonce();
  if (!nonce.ok()) {
    env_.log->error("can't begin a handshake with a peer", "reason", nonce.status().message());
    return std::nullopt;
  }
  size_t strangers = 0;
  Connection* oldest = nullptr;
  for (const auto& connection : connections_) {
    if (!connection->peer().accepted || connection->is_up() || connection->is_dead()) continue;
    if (++strangers == 1) oldest = connection.get();
  }
  if (oldest != nullptr && strangers >= options_.max_strangers) {
    oldest->close(absl::ResourceExhaustedError(absl::StrCat(oldest->peer().address,
                                                            " was closed to make room: ", options_.max_strangers,
                                                            " peers have connected and not finished the handshake")));
  }
  return wire::ServerHandshake(*jobs_, *nonce);
}

void Transport::mark_dirty(Connection* connection) {
  if (!std::exchange(connection->dirty, true)) dirty_.push_back(connection);
}

void Transport::mark_dead(Connection* connection) { dead_.push_back(connection); }

void Transport::flush() {
  for (size_t i = 0; i < dirty_.size(); ++i) {
    dirty_[i]->dirty = false;
    dirty_[i]->flush();
  }
  dirty_.clear();
}

void Transport::schedule_read(Connection* connection) {
  if (std::exchange(connection->read_scheduled, true)) return;
  scheduled_reads_.push_back(connection);
  has_scheduled_reads_.store(true, std::memory_order_relaxed);
}

void Transport::wait_for_events(absl::Duration timeout) {
  if (ready_ > 0) return;
  const int count = epoll_wait(epoll_.get(), events_.data(), kEventsPerPoll, to_milliseconds(timeout));
  ready_ = static_cast<size_t>(std::max(count, 0));  // -1, interrupted by a signal, counts as no event
}

void Transport::poll(absl::Duration timeout) {
  flush();
  if (ready_ == 0) wait(dead_.empty() && scheduled_reads_.empty() ? timeout : absl::ZeroDuration());
  handle_events();
  flush();
  remove_dead();
}

void Transport::handle_events() {
  bool ticked = false;
  for (size_t i = 0; i < ready_; ++i) {
    void* const tag = events_[i].data.ptr;
    if (tag == &timer_) {
      ticked = true;
    } else if (tag == waker_.get()) {
      waker_->clear();
    } else {
      static_cast<Source*>(tag)->on_events(events_[i].events);
    }
  }
  ready_ = 0;
  reading_.swap(scheduled_reads_);
  has_scheduled_reads_.store(false, std::memory_order_relaxed);
  for (Connection* connection : reading_) {
    connection->read_scheduled = false;
    connection->read_if_alive();
  }
  reading_.clear();
  take_turn();
  if (ticked) tick();  // after all reads, so that a peer whose frames have just been read does not count as silent
}

void Transport::tick() {
  uint64_t ticks = 0;
  [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &ticks, sizeof(ticks));
  const absl::Duration when = now();
  const absl::Duration listened = when - last_tick_;
  last_tick_ = when;
  for (size_t i = 0; i < connections_.size(); ++i) connections_[i]->check_time(when, listened);
  on_tick();
}

void Transport::remove_dead() {
  const bool fewer = !dead_.empty();
  while (!dead_.empty()) {
    closing_.swap(dead_);
    for (Connection* connection : closing_) {
      handler_->on_closed(*connection, connection->status());
      std::erase(dirty_, connection);
      std::erase(scheduled_reads_, connection);
      std::erase_if(connections_, [connection](const auto& owned) { return owned.get() == connection; });
    }
    closing_.clear();
  }
  has_scheduled_reads_.store(!scheduled_reads_.empty(), std::memory_order_relaxed);
  if (fewer) on_connections_changed();
}

void Transport::drop_connections() {
  dirty_.clear();
  dead_.clear();
  scheduled_reads_.clear();
  has_scheduled_reads_.store(false, std::memory_order_relaxed);
  connections_.clear();
}

}  // namespace gleaner::transport::stream
