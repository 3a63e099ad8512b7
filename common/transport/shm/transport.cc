#include "common/transport/shm/transport.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/transport/shm/socket.h"

namespace gleaner::transport::shm {
namespace {

// Of rings, between two looks at the clock and at epoll.
constexpr int kLooks = 64;
constexpr absl::Duration kLeastSpin = absl::Microseconds(10);
// While rings have news at every look, epoll is asked now and then only: it costs as much as a small frame.
constexpr uint32_t kWaitsPerAsking = 8;

bool has_one_processor() {
  cpu_set_t processors;
  return sched_getaffinity(0, sizeof(processors), &processors) == 0 && CPU_COUNT(&processors) < 2;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

absl::Status check(const Options& options) {
  const size_t segment = kControlBytes + options.ring_bytes;
  if (segment >= kLeastSegment && options.ring_bytes <= kMostSegment / 2 && options.ring_bytes % kAlignment == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("a ring of ", options.ring_bytes, " bytes; from ",
                                                 kLeastSegment - kControlBytes, " to ", kMostSegment / 2,
                                                 " in multiples of ", kAlignment, " are possible"));
}

Options without_needless_spins(Options options) {
  if (has_one_processor()) options.spin = absl::ZeroDuration();
  return options;
}

}  // namespace

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : remote::Transport(env, options, handler, jobs),
      options_(without_needless_spins(options)),
      listener_(this, [this](Descriptor socket) { accept(std::move(socket)); }),
      spin_(options_.spin) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::create(const Env& env, const Options& options, Handler* handler,
                                                             const wire::JobSecrets* jobs) {
  GLN_RETURN_IF_ERROR(check(options));
  auto transport = std::unique_ptr<Transport>(new Transport(env, options, handler, jobs));
  GLN_RETURN_IF_ERROR(transport->open());
  return transport;
}

Transport::~Transport() {
  if (!path_.empty()) unlink(path_.c_str());
  drop_connections();
}

absl::StatusOr<Address> Transport::listen(const Address& address) {
  if (listener_.is_open()) return absl::FailedPreconditionError("this transport listens already");
  GLN_ASSIGN_OR_RETURN(Listening listening, listen_in(address.host, env()));
  path_ = std::move(listening.path);
  GLN_RETURN_IF_ERROR(listener_.open(std::move(listening.socket)));
  return Address{path_, 0};
}

absl::StatusOr<transport::Connection*> Transport::connect(const Address& address, const ConnectOptions& options) {
  GLN_ASSIGN_OR_RETURN(const wire::Nonce nonce, draw_nonce());
  GLN_ASSIGN_OR_RETURN(Descriptor socket, connect_to(address.host));
  auto connection = std::make_unique<Connection>(this, std::move(socket), address.host, options, nonce);
  GLN_RETURN_IF_ERROR(connection->watch());
  Connection& started = *connection;
  adopt(std::move(connection));
  started.greet();
  return &started;
}

void Transport::accept(Descriptor socket) {
  std::optional<wire::ServerHandshake> handshake = greet();
  if (!handshake.has_value()) return;
  std::string address = peer_of(socket);
  auto connection = std::make_unique<Connection>(this, std::move(socket), std::move(address), *handshake);
  Connection& accepted = *connection;
  adopt(std::move(connection));
  absl::Status status = accepted.watch();
  if (!status.ok()) accepted.close(std::move(status));
}

absl::StatusOr<Segment> Transport::make_segment(size_t bytes) {
  if (memory_bytes_ + bytes > options_.most_memory) {
    return absl::ResourceExhaustedError(absl::StrCat("no more than ",
                                                     format_bytes(static_cast<double>(options_.most_memory)),
                                                     " of shared memory may be used: there are too many connections"));
  }
  GLN_ASSIGN_OR_RETURN(Segment segment, Segment::create(bytes, options_.huge_pages));
  memory_bytes_ += segment.memory().size();
  return segment;
}

void Transport::on_connections_changed() {
  up_.clear();
  for (const auto& connection : connections()) {
    if (connection->is_up()) up_.push_back(static_cast<Connection*>(connection.get()));
  }
}

// --- waiting

void Transport::wait(absl::Duration timeout) {
  if (has_events()) return;
  const bool was_asleep = asleep_;  // and may have been woken
  const bool sleeps = !linger(timeout) && timeout > absl::ZeroDuration();
  const bool asks = sleeps || was_asleep || !looks_again() || ++waits_unasked_ % kWaitsPerAsking == 0;
  if (asks) wait_for_events(sleeps ? timeout : absl::ZeroDuration());
  wake_up();
}

bool Transport::find_news() {
  bool found = false;
  for (Connection* connection : up_) {
    if (!connection->has_news()) continue;
    look_again(connection);
    found = true;
  }
  return found;
}

bool Transport::linger(absl::Duration timeout) {
  if (find_news()) {
    wake_up();
    return true;
  }
  if (timeout <= absl::ZeroDuration() || asleep_) return false;
  const absl::Duration begin = now();
  if (!up_.empty() && find_news_for(std::min(timeout, spin_))) return true;
  nothing_since_ = begin;
  if (fall_asleep()) return false;
  wake_up();
  return true;
}

// Or something that epoll knows of.
bool Transport::find_news_for(absl::Duration time) {
  for (const absl::Duration end = now() + time; now() < end;) {
    for (int i = 0; i < kLooks; ++i) {
      pause();
      if (find_news()) return true;
    }
    wait_for_events(absl::ZeroDuration());
    if (has_events()) return true;
  }
  return false;
}

bool Transport::fall_asleep() {
  asleep_ = true;
  bool quiet = true;
  for (Connection* connection : up_) {
    if (connection->sleep()) continue;
    look_again(connection);
    quiet = false;
  }
  return quiet;
}

void Transport::wake_up() {
  if (!std::exchange(asleep_, false)) return;
  for (Connection* connection : up_) connection->awake();
  const bool soon = now() - nothing_since_ <= 2 * options_.spin;
  spin_ = soon ? std::min(std::max(2 * spin_, kLeastSpin), options_.spin) : spin_ / 2;
}

}  // namespace gleaner::transport::shm
