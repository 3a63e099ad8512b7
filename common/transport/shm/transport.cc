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

// The number of looks at the rings between two looks at the clock and at epoll.
constexpr int kLooks = 64;
constexpr absl::Duration kLeastSpin = absl::Microseconds(10);
// While every look at the rings finds work, only one wait in kWaitsPerEpoll calls epoll, since a call costs as much as
// a small frame.
constexpr uint32_t kWaitsPerEpoll = 8;

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
  return absl::InvalidArgumentError(absl::StrCat("a ring of ", options.ring_bytes, " bytes; expected ",
                                                 kLeastSegment - kControlBytes, " to ", kMostSegment / 2,
                                                 " in multiples of ", kAlignment));
}

Options without_needless_spins(Options options) {
  if (has_one_processor()) options.spin = absl::ZeroDuration();
  return options;
}

}  // namespace

Transport::Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs)
    : stream::SocketTransport(env, options, handler, jobs),
      options_(without_needless_spins(options)),
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

absl::StatusOr<stream::SocketTransport::Bound> Transport::bind(const Address& address) {
  GLN_ASSIGN_OR_RETURN(Listening listening, listen_in(address.host, env()));
  path_ = std::move(listening.path);
  return Bound{std::move(listening.socket), {path_, 0}};
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

std::unique_ptr<stream::SocketConnection> Transport::accepted(Descriptor socket,
                                                              const wire::ServerHandshake& handshake) {
  std::string address = peer_of(socket);
  return std::make_unique<Connection>(this, std::move(socket), std::move(address), handshake);
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

// Waiting.

void Transport::wait(absl::Duration timeout) {
  if (has_events()) return;
  const bool was_asleep = asleep_;  // a peer may have woken this side meanwhile
  const bool sleeps = !spin_before_wait(timeout) && timeout > absl::ZeroDuration();
  const bool needs_epoll =
      sleeps || was_asleep || !has_scheduled_reads() || ++waits_without_epoll_ % kWaitsPerEpoll == 0;
  if (needs_epoll) wait_for_events(sleeps ? timeout : absl::ZeroDuration());
  wake_up();
}

bool Transport::find_work() {
  bool found = false;
  for (Connection* connection : up_) {
    if (!connection->has_work()) continue;
    schedule_read(connection);
    found = true;
  }
  return found;
}

bool Transport::spin_before_wait(absl::Duration timeout) {
  if (find_work()) {
    wake_up();
    return true;
  }
  if (timeout <= absl::ZeroDuration() || asleep_) return false;
  const absl::Duration begin = now();
  if (!up_.empty() && spin_for_work(std::min(timeout, spin_))) return true;
  sleep_began_ = begin;
  if (prepare_sleep()) return false;
  wake_up();
  return true;
}

// Spins for up to `time`. Returns true if a ring has data, or if epoll has an event.
bool Transport::spin_for_work(absl::Duration time) {
  for (const absl::Duration end = now() + time; now() < end;) {
    for (int i = 0; i < kLooks; ++i) {
      pause();
      if (find_work()) return true;
    }
    wait_for_events(absl::ZeroDuration());
    if (has_events()) return true;
  }
  return false;
}

bool Transport::prepare_sleep() {
  asleep_ = true;
  bool quiet = true;
  for (Connection* connection : up_) {
    if (connection->prepare_sleep()) continue;
    schedule_read(connection);
    quiet = false;
  }
  return quiet;
}

void Transport::wake_up() {
  if (!std::exchange(asleep_, false)) return;
  for (Connection* connection : up_) connection->end_sleep();
  const bool soon = now() - sleep_began_ <= 2 * options_.spin;
  spin_ = soon ? std::min(std::max(2 * spin_, kLeastSpin), options_.spin) : spin_ / 2;
}

}  // namespace gleaner::transport::shm
