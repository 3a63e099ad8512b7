#include "common/transport/tcp/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport::tcp {
namespace {

constexpr size_t kMaxPieces = 128;    // of one system call
constexpr size_t kReadsPerTurn = 16;  // then others have theirs

}  // namespace

Connection::Connection(Transport* transport, Socket socket, std::string address,
                       std::optional<wire::ClientHandshake> client, std::optional<wire::ServerHandshake> server,
                       absl::Duration now)
    : transport_(transport),
      socket_(std::move(socket)),
      phase_(client.has_value() ? Phase::kConnecting : Phase::kHandshake),
      client_(std::move(client)),
      server_(std::move(server)),
      last_heard_(now),
      last_ping_(now) {
  peer_.address = std::move(address);
  peer_.accepted = server_.has_value();
  allocate_ = [this](const wire::Header& header) -> absl::StatusOr<Buffer> {
    if (is_up()) return transport_->handler()->on_header(*this, header);
    if (header.payload_bytes > wire::kMaxHandshakePayload) {
      return absl::InvalidArgumentError(absl::StrCat(wire::name_of(header.type), " frame with ", header.payload_bytes,
                                                     " bytes before the handshake is done"));
    }
    return transport_->handshake_pool().take(header.payload_bytes);
  };
}

void Connection::send(const wire::Header& header, Buffer payload) {
  if (phase_ != Phase::kUp) return;
  enqueue(header, std::move(payload));
}

void Connection::enqueue(wire::Header header, Buffer payload) {
  wire::seal(header, payload.bytes());
  queued_bytes_ += wire::kHeaderBytes + payload.size();
  queue_.push_back({header, std::move(payload)});
  transport_->mark_dirty(this);
}

void Connection::close(absl::Status status) {
  if (phase_ == Phase::kDead) return;
  phase_ = Phase::kDead;
  status_ = std::move(status);
  queue_.clear();
  head_ = 0;
  queued_bytes_ = 0;
  transport_->bury(this);
}

void Connection::flush() {
  while (head_ < queue_.size() && phase_ != Phase::kDead && phase_ != Phase::kConnecting) {
    iovec pieces[kMaxPieces];
    size_t count = 0;
    size_t skip = head_written_;
    for (size_t i = head_; i < queue_.size() && count + 2 <= kMaxPieces; ++i) {
      Outgoing& frame = queue_[i];
      const size_t header_skip = std::min(skip, wire::kHeaderBytes);
      if (header_skip < wire::kHeaderBytes) {
        pieces[count++] = {reinterpret_cast<std::byte*>(&frame.header) + header_skip, wire::kHeaderBytes - header_skip};
      }
      const size_t payload_skip = skip - header_skip;
      if (payload_skip < frame.payload.size()) {
        pieces[count++] = {frame.payload.bytes().data() + payload_skip, frame.payload.size() - payload_skip};
      }
      skip = 0;
    }
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    const ssize_t written = sendmsg(descriptor(), &message, MSG_NOSIGNAL);
    if (written < 0) {
      if (errno == EAGAIN) return;
      if (errno == EINTR) continue;
      return close(
          absl::UnavailableError(absl::StrCat("connection to ", peer_.address, " broke: ", std::strerror(errno))));
    }
    drop_written(static_cast<size_t>(written));
  }
}

void Connection::drop_written(size_t bytes) {
  queued_bytes_ -= bytes;
  head_written_ += bytes;
  while (head_ < queue_.size()) {
    const size_t size = wire::kHeaderBytes + queue_[head_].payload.size();
    if (head_written_ < size) break;
    head_written_ -= size;
    queue_[head_++].payload = {};
  }
  if (head_ == queue_.size()) {
    queue_.clear();
    head_ = 0;
  } else if (head_ >= 1024) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
}

void Connection::on_writable(absl::Duration now) {
  if (phase_ == Phase::kConnecting) {
    const absl::Status outcome = connect_outcome(socket_, peer_.address);
    if (!outcome.ok()) return close(outcome);
    last_heard_ = now;
    phase_ = Phase::kHandshake;
    send_handshake({client_->hello()});
  }
  flush();
}

void Connection::on_readable(absl::Duration now) {
  for (size_t turn = 0; turn < kReadsPerTurn && phase_ != Phase::kDead; ++turn) {
    const MutableBytes space = reader_.space();
    const ssize_t got = recv(descriptor(), space.data(), space.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      return close(absl::UnavailableError(
          absl::StrCat("connection to ", peer_.address,
                       got == 0 ? " was closed by the peer" : " broke: ", got == 0 ? "" : std::strerror(errno))));
    }
    last_heard_ = now;
    reader_.received(static_cast<size_t>(got));
    FrameReader::Frame frame;
    while (phase_ != Phase::kDead) {
      const absl::StatusOr<bool> whole = reader_.next(allocate_, &frame);
      if (!whole.ok()) {
        const absl::Status error(whole.status().code(), absl::StrCat(peer_.address, ": ", whole.status().message()));
        if (server_.has_value() && phase_ == Phase::kHandshake) send_handshake({wire::ServerHandshake::reject(error)});
        flush();
        return close(error);
      }
      if (!*whole) break;
      handle(frame.header, std::move(frame.payload));
    }
    if (static_cast<size_t>(got) < space.size()) return;  // drained
  }
}

void Connection::handle(const wire::Header& header, Buffer payload) {
  if (phase_ == Phase::kHandshake) return on_handshake(header, payload.bytes());
  if (header.type == wire::FrameType::kPong) return;
  if (header.type == wire::FrameType::kPing) {
    wire::Header pong;
    pong.type = wire::FrameType::kPong;
    return enqueue(pong, {});
  }
  transport_->handler()->on_frame(*this, header, std::move(payload));
}

void Connection::on_handshake(const wire::Header& header, ConstBytes payload) {
  auto answer = client_.has_value() ? client_->on_frame(header, payload) : server_->on_frame(header, payload);
  if (!answer.ok()) {
    const absl::Status error(answer.status().code(), absl::StrCat(peer_.address, ": ", answer.status().message()));
    if (server_.has_value()) send_handshake({wire::ServerHandshake::reject(answer.status())});
    flush();
    return close(error);
  }
  send_handshake(*answer);
  if (server_.has_value() && server_->done()) come_up(server_->job(), server_->member());
  if (client_.has_value() && client_->done()) come_up(peer_.job, peer_.member);
}

void Connection::come_up(uint64_t job, uint32_t member) {
  peer_.job = job;
  peer_.member = member;
  phase_ = Phase::kUp;
  transport_->handler()->on_connected(*this);
}

void Connection::send_handshake(const std::vector<wire::HandshakeFrame>& frames) {
  for (const wire::HandshakeFrame& frame : frames) {
    Buffer payload = transport_->handshake_pool().take(frame.payload.size());
    std::copy(frame.payload.begin(), frame.payload.end(), payload.bytes().begin());
    enqueue(frame.header, std::move(payload));
  }
}

void Connection::check_time(absl::Duration now) {
  const Options& options = transport_->options();
  if (phase_ != Phase::kUp) {
    if (now > handshake_deadline)
      close(absl::DeadlineExceededError(absl::StrCat("no answer from ", peer_.address, " in time")));
    return;
  }
  if (now - last_heard_ > options.idle_deadline) {
    return close(absl::DeadlineExceededError(
        absl::StrCat(peer_.address, " has been silent for ", absl::FormatDuration(options.idle_deadline))));
  }
  if (now - last_heard_ > options.ping_after && now - last_ping_ > options.ping_after) {
    last_ping_ = now;
    wire::Header ping;
    ping.type = wire::FrameType::kPing;
    enqueue(ping, {});
  }
}

}  // namespace gleaner::transport::tcp
