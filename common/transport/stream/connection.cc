#include "common/transport/stream/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/stream/transport.h"

namespace gleaner::transport::stream {
namespace {

absl::Status too_early(wire::FrameType type) {
  return absl::InvalidArgumentError(absl::StrCat(wire::name_of(type), " frame before the handshake is done"));
}

}  // namespace

Connection::Connection(Transport* transport, std::string address, const wire::ServerHandshake& handshake)
    : transport_(transport),
      phase_(Phase::kHandshake),
      peer_{.accepted = true, .address = std::move(address)},
      server_(handshake),
      handshake_deadline_(transport->now() + transport->options().handshake_timeout),
      keep_alive_(transport->options().keep_alive) {}

Connection::Connection(Transport* transport, std::string address, const ConnectOptions& options,
                       const wire::Nonce& nonce)
    : transport_(transport),
      phase_(Phase::kConnecting),
      peer_{.job = options.job, .address = std::move(address)},
      client_(std::in_place, options.job, options.member, options.secret, nonce),
      handshake_deadline_(transport->now() + options.timeout),
      keep_alive_(options.keep_alive) {
  context = options.context;
}

void Connection::send(const wire::Header& header, Buffer payload) {
  if (phase_ != Phase::kUp) return;
  ++sent_;
  enqueue(header, std::move(payload));
}

void Connection::enqueue(const wire::Header& header, Buffer payload) {
  push(header, std::move(payload));
  transport_->mark_dirty(this);
}

void Connection::enqueue_empty(wire::FrameType type, uint64_t frames, uint32_t number) {
  wire::Header header;
  header.type = type;
  header.step = frames;
  header.partition = number;
  enqueue(header, {});
}

void Connection::ping(uint32_t times) {
  if (phase_ != Phase::kUp || times == 0) return;
  answer_times_.begin(times);
  send_measured_ping();
}

void Connection::send_measured_ping() {
  enqueue_empty(wire::FrameType::kPing, sent_, answer_times_.on_ping(transport_->now()));
}

void Connection::flush() {
  if (phase_ == Phase::kDead || phase_ == Phase::kConnecting) return;
  absl::Status status = write();
  if (!status.ok()) die(std::move(status));
}

void Connection::read_if_alive() {
  if (phase_ != Phase::kDead) read();
}

void Connection::close(absl::Status status) {
  if (phase_ == Phase::kUp) write_last(status);
  die(std::move(status));
}

void Connection::refuse(const absl::Status& status, bool tell) {
  if (phase_ == Phase::kDead) return;
  if (tell) write_last(status);
  die(absl::Status(status.code(), absl::StrCat(peer_.address, ": ", status.message())));
}

void Connection::write_last(const absl::Status& status) {
  if (!status.ok()) send_handshake({wire::ServerHandshake::reject(status)});
  write().IgnoreError();  // the connection ends anyway
}

void Connection::die(absl::Status status) {
  if (std::exchange(phase_, Phase::kDead) == Phase::kDead) return;
  status_ = std::move(status);
  release_frames();
  transport_->mark_dead(this);
}

absl::Status Connection::broken(int error) const {
  return absl::UnavailableError(absl::StrCat("connection to ", peer_.address, " broke: ", std::strerror(error)));
}

absl::Status Connection::closed_by_peer(absl::string_view why) const {
  return absl::UnavailableError(
      absl::StrCat("connection to ", peer_.address, " was closed by the peer", why.empty() ? "" : ": ", why));
}

void Connection::connected() {
  phase_ = Phase::kHandshake;
  send_handshake({client_->hello()});
}

absl::StatusOr<Buffer> Connection::place(const wire::Header& header) {
  if (wire::is_handshake(header.type)) return transport_->handshake_pool().take(header.payload_bytes);
  if (phase_ == Phase::kUp) return transport_->handler()->on_header(*this, header);
  return too_early(header.type);
}

void Connection::handle(const wire::Header& header, Buffer payload) {
  if (phase_ == Phase::kHandshake) return on_handshake(header, payload.bytes());
  if (phase_ == Phase::kSettling && !wire::is_handshake(header.type)) return refuse(too_early(header.type));
  switch (header.type) {
    case wire::FrameType::kPong:
      arrived_ = header.step;
      if (answer_times_.on_pong(header.partition, transport_->now())) send_measured_ping();
      return;
    case wire::FrameType::kPing:
      // Queued frames, too, show that this side is alive. So PONGs do not accumulate for a peer that does not read.
      if (queued_bytes() == 0) enqueue_empty(wire::FrameType::kPong, header.step, header.partition);
      return;
    case wire::FrameType::kReject:
      return die(closed_by_peer(wire::reject_message(payload.bytes())));
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
  if (!(client_.has_value() ? client_->done() : server_->done())) return;
  if (server_.has_value()) {
    peer_.job = server_->job();
    peer_.member = server_->member();
  }
  phase_ = Phase::kSettling;
  on_proven();
}

void Connection::come_up() {
  phase_ = Phase::kUp;
  transport_->on_connections_changed();
  heard();
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
  if (phase_ == Phase::kDead) return;
  if (phase_ != Phase::kUp) {
    if (now < handshake_deadline_) return;
    const char* const what = phase_ == Phase::kConnecting ? "no connection to " : "no handshake with ";
    return die(absl::DeadlineExceededError(absl::StrCat(what, peer_.address, " in time")));
  }
  // A long pause between two polls is not the peer's silence, so at most a quarter of the deadline counts.
  listened = std::min(listened, keep_alive_.idle_deadline / 4);
  silence_ += listened;
  since_ping_ += listened;
  if (silence_ >= keep_alive_.ping_after) read();
  if (phase_ == Phase::kDead) return;
  if (silence_ >= keep_alive_.idle_deadline) {
    return die(absl::DeadlineExceededError(
        absl::StrCat(peer_.address, " has been silent for ", absl::FormatDuration(silence_))));
  }
  const bool needs_confirmation = client_.has_value() && !all_arrived() && since_ping_ >= keep_alive_.ping_after;
  if (silence_ - pinged_ < keep_alive_.ping_after && !needs_confirmation) return;
  pinged_ = silence_;
  since_ping_ = absl::ZeroDuration();
  enqueue_empty(wire::FrameType::kPing, sent_);
}

}  // namespace gleaner::transport::stream
