#include "common/transport/tcp/connection.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport::tcp {
namespace {

// What one connection may move in a turn; then others have theirs.
constexpr size_t kReadBytesPerTurn = 4 << 20;
constexpr size_t kWriteBytesPerTurn = 4 << 20;
// Of a large frame, how much has to come before its reader is woken: a wake-up costs as much as copying some 50 KB.
constexpr size_t kWakeBytes = 256 << 10;

}  // namespace

Connection::Connection(Transport* transport, Socket socket, std::string address, const wire::ServerHandshake& handshake,
                       absl::Duration deadline)
    : transport_(transport),
      socket_(std::move(socket)),
      phase_(Phase::kHandshake),
      peer_{.accepted = true, .address = std::move(address)},
      server_(handshake),
      handshake_deadline_(deadline),
      patience_(transport->options().patience),
      place_([this](const wire::Header& header) { return place(header); }) {}

Connection::Connection(Transport* transport, std::vector<Target> targets, std::string address,
                       const ConnectOptions& options, const wire::Nonce& nonce, absl::Duration deadline)
    : transport_(transport),
      phase_(Phase::kConnecting),
      peer_{.job = options.job, .address = std::move(address)},
      targets_(std::move(targets)),
      client_(std::in_place, options.job, options.member, options.secret, nonce),
      handshake_deadline_(deadline),
      patience_(options.patience),
      place_([this](const wire::Header& header) { return place(header); }) {
  context = options.context;
  std::reverse(targets_.begin(), targets_.end());
}

void Connection::send(const wire::Header& header, Buffer payload) {
  if (phase_ == Phase::kUp) enqueue(header, std::move(payload));
}

void Connection::enqueue(const wire::Header& header, Buffer payload) {
  outbox_.push(header, std::move(payload));
  transport_->mark_dirty(this);
}

void Connection::enqueue_empty(wire::FrameType type) {
  wire::Header header;
  header.type = type;
  enqueue(header, {});
}

void Connection::close(absl::Status status) {
  if (phase_ == Phase::kUp) say_goodbye(status);
  die(std::move(status));
}

void Connection::refuse(const absl::Status& status, bool tell) {
  if (phase_ == Phase::kDead) return;
  if (tell) say_goodbye(status);
  die(absl::Status(status.code(), absl::StrCat(peer_.address, ": ", status.message())));
}

void Connection::say_goodbye(const absl::Status& status) {
  if (!status.ok()) send_handshake({wire::ServerHandshake::reject(status)});
  outbox_.write_to(descriptor(), kWriteBytesPerTurn);
}

void Connection::die(absl::Status status) {
  if (std::exchange(phase_, Phase::kDead) == Phase::kDead) return;
  status_ = std::move(status);
  outbox_.clear();
  transport_->bury(this);
}

absl::Status Connection::broken(int error) const {
  return absl::UnavailableError(absl::StrCat("connection to ", peer_.address, " broke: ", std::strerror(error)));
}

void Connection::flush() {
  if (phase_ == Phase::kDead || phase_ == Phase::kConnecting) return;
  const int error = outbox_.write_to(descriptor(), kWriteBytesPerTurn);
  if (error != 0) die(broken(error));
}

absl::Status Connection::connect_next() {
  absl::StatusOr<Socket> socket = absl::UnavailableError(absl::StrCat(peer_.address, " has no address"));
  while (!targets_.empty() && !socket.ok()) {
    socket = start_connect(targets_.back(), peer_.address);
    targets_.pop_back();
  }
  GLN_RETURN_IF_ERROR(socket.status());
  socket_ = *std::move(socket);
  return absl::OkStatus();
}

void Connection::on_writable() {
  if (phase_ == Phase::kConnecting) {
    const absl::Status outcome = connect_outcome(socket_, peer_.address);
    if (!outcome.ok()) {
      if (targets_.empty()) return die(outcome);
      const absl::Status next = connect_next();
      if (!next.ok()) return die(next);
      return transport_->watch_again(*this);
    }
    phase_ = Phase::kHandshake;
    send_handshake({client_->hello()});
  }
  flush();
}

void Connection::on_readable() {
  if (phase_ == Phase::kConnecting) return;  // to the next of its addresses
  for (size_t total = 0; total < kReadBytesPerTurn && phase_ != Phase::kDead;) {
    const std::array<MutableBytes, 2> space = reader_.space();
    iovec pieces[] = {{space[0].data(), space[0].size()}, {space[1].data(), space[1].size()}};
    const ssize_t got = readv(descriptor(), pieces, std::size(pieces));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got < 0) return die(broken(errno));
    if (got == 0) {
      return die(absl::UnavailableError(absl::StrCat("connection to ", peer_.address, " was closed by the peer")));
    }
    silence_ = pinged_ = absl::ZeroDuration();
    total += static_cast<size_t>(got);
    reader_.received(static_cast<size_t>(got));
    read_frames();
    if (static_cast<size_t>(got) < space[0].size() + space[1].size()) break;  // that was all
  }
  if (phase_ == Phase::kUp) wake_for(reader_.awaited());
}

// Without success we are woken for less, too.
void Connection::wake_for(size_t bytes) {
  const int wanted = static_cast<int>(std::min(bytes, kWakeBytes));
  if (wanted == low_water_) return;
  low_water_ = wanted;
  setsockopt(descriptor(), SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(wanted));
}

void Connection::read_frames() {
  FrameReader::Frame frame;
  while (phase_ != Phase::kDead) {
    const absl::StatusOr<bool> whole = reader_.next(place_, &frame);
    if (!whole.ok()) return refuse(whole.status());
    if (!*whole) return;
    if (phase_ != Phase::kDead) handle(frame.header, std::move(frame.payload));  // place() may have closed it
  }
}

absl::StatusOr<Buffer> Connection::place(const wire::Header& header) {
  if (wire::is_handshake(header.type)) return transport_->handshake_pool().take(header.payload_bytes);
  if (phase_ == Phase::kUp) return transport_->handler()->on_header(*this, header);
  return absl::InvalidArgumentError(absl::StrCat(wire::name_of(header.type), " frame before the handshake is done"));
}

void Connection::handle(const wire::Header& header, Buffer payload) {
  if (phase_ == Phase::kHandshake) return on_handshake(header, payload.bytes());
  switch (header.type) {
    case wire::FrameType::kPong:
      return;
    case wire::FrameType::kPing:
      // Frames that are queued tell the peer as much, and a peer that does not read can't pile up answers.
      if (outbox_.empty()) enqueue_empty(wire::FrameType::kPong);
      return;
    case wire::FrameType::kReject:
      return die(absl::UnavailableError(absl::StrCat(
          "connection to ", peer_.address, " was closed by the peer: ", wire::reject_message(payload.bytes()))));
    default:
      if (wire::is_handshake(header.type)) {
        return refuse(
            absl::InvalidArgumentError(absl::StrCat(wire::name_of(header.type), " frame after the handshake is done")));
      }
      transport_->handler()->on_frame(*this, header, std::move(payload));
  }
}

void Connection::on_handshake(const wire::Header& header, ConstBytes payload) {
  const auto answer = client_.has_value() ? client_->on_frame(header, payload) : server_->on_frame(header, payload);
  if (!answer.ok()) return refuse(answer.status(), header.type != wire::FrameType::kReject);
  send_handshake(*answer);
  if (client_.has_value() ? client_->done() : server_->done()) come_up();
}

void Connection::come_up() {
  if (server_.has_value()) {
    peer_.job = server_->job();
    peer_.member = server_->member();
  }
  phase_ = Phase::kUp;
  if (peer_.accepted) transport_->share_pace();
  silence_ = pinged_ = absl::ZeroDuration();
  transport_->handler()->on_connected(*this);
}

void Connection::send_handshake(const std::vector<wire::HandshakeFrame>& frames) {
  for (const wire::HandshakeFrame& frame : frames) {
    Buffer payload = transport_->handshake_pool().take(frame.payload.size());
    std::copy(frame.payload.begin(), frame.payload.end(), payload.bytes().begin());
    enqueue(frame.header, std::move(payload));
  }
}

void Connection::check_time(absl::Duration now, absl::Duration listened) {
  if (phase_ == Phase::kConnecting || phase_ == Phase::kHandshake) {
    if (now < handshake_deadline_) return;
    const char* const what = phase_ == Phase::kConnecting ? "no connection to " : "no handshake with ";
    return die(absl::DeadlineExceededError(absl::StrCat(what, peer_.address, " in time")));
  }
  if (phase_ == Phase::kDead) return;
  // While nobody polled, nobody listened: a long pause of ours does not count as a peer's silence.
  silence_ += std::min(listened, patience_.idle_deadline / 4);
  if (silence_ >= patience_.ping_after) on_readable();  // it may have sent less than we are woken for
  if (phase_ == Phase::kDead) return;
  if (silence_ >= patience_.idle_deadline) {
    return die(absl::DeadlineExceededError(
        absl::StrCat(peer_.address, " has been silent for ", absl::FormatDuration(silence_))));
  }
  if (silence_ - pinged_ < patience_.ping_after) return;
  pinged_ = silence_;
  enqueue_empty(wire::FrameType::kPing);
}

}  // namespace gleaner::transport::tcp
