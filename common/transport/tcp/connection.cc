#include "common/transport/tcp/connection.h"

#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport::tcp {
namespace {

// The most bytes that one connection moves per turn, so that it does not starve others.
constexpr size_t kReadBytesPerTurn = 4 << 20;
constexpr size_t kWriteBytesPerTurn = 4 << 20;
// The most bytes of a large frame that may arrive before the reader is woken. A wake-up costs as much as a copy of
// about 50 KB.
constexpr size_t kWakeBytes = 256 << 10;

}  // namespace

Connection::Connection(Transport* transport, Descriptor socket, std::string address,
                       const wire::ServerHandshake& handshake)
    : stream::SocketConnection(transport, std::move(socket), stream::Outbox(), std::move(address), handshake),
      transport_(transport),
      place_([this](const wire::Header& header) { return place(header); }) {}

Connection::Connection(Transport* transport, std::vector<Target> targets, std::string address,
                       const ConnectOptions& options, const wire::Nonce& nonce)
    : stream::SocketConnection(transport, Descriptor(), stream::Outbox(), std::move(address), options, nonce),
      transport_(transport),
      targets_(std::move(targets)),
      place_([this](const wire::Header& header) { return place(header); }) {
  std::reverse(targets_.begin(), targets_.end());
}

absl::Status Connection::connect_next() {
  absl::StatusOr<Descriptor> connecting = absl::UnavailableError(absl::StrCat(peer().address, " has no address"));
  while (!targets_.empty() && !connecting.ok()) {
    connecting = start_connect(targets_.back(), peer().address);
    targets_.pop_back();
  }
  GLN_RETURN_IF_ERROR(connecting.status());
  use_socket(*std::move(connecting));
  return absl::OkStatus();
}

absl::Status Connection::watch() {
  armed_ = events_wanted();
  return transport_->watch(EPOLL_CTL_ADD, descriptor(), armed_, this);
}

uint32_t Connection::events_wanted() const {
  const bool wants_write = phase() == Phase::kConnecting || !outbox().empty();
  return wants_write ? uint32_t{EPOLLIN} | uint32_t{EPOLLOUT} : uint32_t{EPOLLIN};
}

void Connection::on_events(uint32_t events) {
  constexpr uint32_t kOver = uint32_t{EPOLLERR} | uint32_t{EPOLLHUP};
  if ((events & (uint32_t{EPOLLOUT} | kOver)) != 0 && !is_dead()) {
    if (phase() == Phase::kConnecting) on_connect_outcome();
    flush();
  }
  if ((events & (uint32_t{EPOLLIN} | kOver)) != 0 && !is_dead()) read();
}

void Connection::on_connect_outcome() {
  const absl::Status outcome = connect_outcome(socket(), peer().address);
  if (outcome.ok()) return connected();
  absl::Status status = targets_.empty() ? outcome : connect_another();
  if (!status.ok()) die(std::move(status));
}

absl::Status Connection::connect_another() {
  GLN_RETURN_IF_ERROR(connect_next());
  return watch();
}

absl::Status Connection::write() {
  const int error = outbox().write_to(descriptor(), kWriteBytesPerTurn);
  if (error != 0) return broken(error);
  const uint32_t wanted = events_wanted();
  if (wanted == armed_) return absl::OkStatus();
  armed_ = wanted;
  return transport_->watch(EPOLL_CTL_MOD, descriptor(), wanted, this);
}

void Connection::read() {
  if (phase() == Phase::kConnecting) return;  // still connecting, perhaps to the next target
  for (size_t total = 0; total < kReadBytesPerTurn && !is_dead();) {
    const std::array<MutableBytes, 2> space = reader_.space();
    iovec pieces[] = {{space[0].data(), space[0].size()}, {space[1].data(), space[1].size()}};
    const ssize_t got = readv(descriptor(), pieces, std::size(pieces));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got < 0) return die(broken(errno));
    if (got == 0) return die(closed_by_peer());
    heard();
    total += static_cast<size_t>(got);
    reader_.received(static_cast<size_t>(got));
    read_frames();
    if (static_cast<size_t>(got) < space[0].size() + space[1].size()) break;  // the socket is empty
  }
  if (is_up()) wake_for(reader_.awaited());
}

// An error is ignored: the reader is then woken for fewer bytes, which only costs time.
void Connection::wake_for(size_t bytes) {
  const int wanted = static_cast<int>(std::min(bytes, kWakeBytes));
  if (wanted == low_water_) return;
  low_water_ = wanted;
  setsockopt(descriptor(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
}

void Connection::read_frames() {
  stream::FrameReader::Frame frame;
  while (!is_dead()) {
    const absl::StatusOr<bool> whole = reader_.next(place_, &frame);
    if (!whole.ok()) return refuse(whole.status());
    if (!*whole) return;
    if (!is_dead()) handle(frame.header, std::move(frame.payload));  // on_header() may have closed the connection
  }
}

}  // namespace gleaner::transport::tcp
