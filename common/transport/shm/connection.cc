#include "common/transport/shm/connection.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/packet_socket.h"
#include "common/base/status_macros.h"
#include "common/transport/shm/socket.h"
#include "common/transport/shm/transport.h"

namespace gleaner::transport::shm {
namespace {

// The number of bytes after which a side publishes or releases them, so that both sides copy at the same time.
constexpr size_t kPiece = 32 << 10;
// The most bytes that one connection reads per turn, so that it does not starve others.
constexpr size_t kReadBytesPerTurn = 4 << 20;
constexpr int kPacketsPerTurn = 64;

absl::Status invalid_position() {
  return absl::DataLossError("the peer's position in shared memory is not valid: it broke the protocol");
}

}  // namespace

Connection::Connection(Transport* transport, Descriptor socket, std::string address,
                       const wire::ServerHandshake& handshake)
    : stream::SocketConnection(transport, std::move(socket), stream::Outbox(false), std::move(address), handshake),
      transport_(transport),
      accepted_(true) {}

Connection::Connection(Transport* transport, Descriptor socket, std::string address, const ConnectOptions& options,
                       const wire::Nonce& nonce)
    : stream::SocketConnection(transport, std::move(socket), stream::Outbox(false), std::move(address), options, nonce),
      transport_(transport),
      accepted_(false) {}

Connection::~Connection() {
  if (own_.has_value()) transport_->give_back(own_->memory().size());
}

absl::Status Connection::watch() { return transport_->watch(EPOLL_CTL_ADD, socket().get(), EPOLLIN, this); }

// Packets, before the connection is up.

void Connection::push(const wire::Header& header, Buffer payload) {
  if (is_up()) return outbox().push(header, std::move(payload));
  send_frame(header, payload.bytes());
}

void Connection::send_frame(const wire::Header& header, ConstBytes payload) {
  std::array<std::byte, wire::kHeaderBytes + wire::kMaxHandshakePayload> packet;
  wire::Header sealed = header;
  wire::seal(sealed, payload);
  std::memcpy(packet.data(), &sealed, wire::kHeaderBytes);
  std::copy(payload.begin(), payload.end(), packet.begin() + wire::kHeaderBytes);
  const int error = send_packet(socket(), ConstBytes(packet).first(wire::kHeaderBytes + payload.size()));
  if (socket_error_ == 0) socket_error_ = error;
}

bool Connection::receive_packets() {
  std::array<std::byte, wire::kHeaderBytes + wire::kMaxHandshakePayload + 1> packet;
  for (int i = 0; i < kPacketsPerTurn && !is_dead(); ++i) {
    ReceivedPacket got = receive_packet(socket(), packet);
    if (got.kind == ReceivedPacket::Kind::kClosed) return false;
    if (got.kind == ReceivedPacket::Kind::kNothing) return true;
    on_packet(MutableBytes(packet).first(got.bytes), std::move(got.attached));
  }
  return true;
}

void Connection::on_packet(MutableBytes bytes, Descriptor attached) {
  if (is_up()) {
    if (bytes.size() != 1)
      refuse(absl::InvalidArgumentError(
          absl::StrCat("the peer sent a packet of ", bytes.size(), " bytes; expected a wake-up of one byte")));
    return;
  }
  if (phase() != Phase::kSettling || !attached.valid()) return on_handshake_packet(bytes);
  const absl::Status status = on_offer(bytes, std::move(attached));
  if (!status.ok()) return refuse(status);
  come_up();
}

void Connection::on_handshake_packet(ConstBytes bytes) {
  if (bytes.size() < wire::kHeaderBytes) {
    return refuse(absl::InvalidArgumentError("not a Gleaner frame: the peer speaks another protocol"));
  }
  const auto header = wire::decode_header(bytes.first<wire::kHeaderBytes>());
  if (!header.ok()) return refuse(header.status());
  const ConstBytes payload = bytes.subspan(wire::kHeaderBytes);
  const absl::Status checked = wire::check_payload(*header, payload);
  if (!checked.ok()) return refuse(checked);
  absl::StatusOr<Buffer> place = this->place(*header);
  if (!place.ok()) return refuse(place.status());
  std::copy(payload.begin(), payload.end(), place->bytes().begin());
  handle(*header, *std::move(place));
}

void Connection::on_proven() {
  if (!accepted_) return;  // the server offers first
  const absl::Status status = offer();
  if (!status.ok()) refuse(status);
}

absl::Status Connection::offer() {
  own_ring_bytes_ = transport_->ring_bytes();
  GLN_ASSIGN_OR_RETURN(Segment segment, transport_->make_segment(kControlBytes + own_ring_bytes_));
  own_.emplace(std::move(segment));
  Offer offer;
  offer.ring_bytes = own_ring_bytes_;
  const int error = send_packet(socket(), std::as_bytes(std::span(&offer, 1)), own_->file());
  own_->close_file();
  return error == 0 ? absl::OkStatus() : broken(error);
}

absl::Status Connection::on_offer(ConstBytes bytes, Descriptor attached) {
  Offer offer;
  const Offer expected;
  if (bytes.size() != sizeof(offer))
    return absl::InvalidArgumentError(
        absl::StrCat("the peer's offer of shared memory has ", bytes.size(), " bytes instead of ", sizeof(offer)));
  std::memcpy(&offer, bytes.data(), sizeof(offer));
  if (offer.magic != expected.magic || offer.version != expected.version) {
    return absl::InvalidArgumentError(absl::StrCat("the peer's offer of shared memory has version ", offer.version,
                                                   ", this side knows version ", expected.version,
                                                   ": run the same release everywhere"));
  }
  GLN_ASSIGN_OR_RETURN(Segment segment, Segment::map(std::move(attached)));
  theirs_.emplace(std::move(segment));
  const size_t most = theirs_->memory().size() - kControlBytes;
  if (offer.ring_bytes == 0 || offer.ring_bytes % kAlignment != 0 || offer.ring_bytes > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer offered a ring of ", offer.ring_bytes, " bytes of shared memory, in a file for ", most));
  }
  if (!accepted_) GLN_RETURN_IF_ERROR(this->offer());
  auto* const own = new (own_->memory().data()) Control;
  const auto* const peer = std::launder(reinterpret_cast<const Control*>(theirs_->memory().data()));
  out_.emplace(own_->memory().subspan(kControlBytes, own_ring_bytes_), own, peer);
  in_.emplace(theirs_->memory().subspan(kControlBytes, offer.ring_bytes), own, peer);
  return absl::OkStatus();
}

// Rings, while the connection is up.

void Connection::on_events(uint32_t /*events*/) {
  if (is_dead()) return;
  const bool open = receive_packets();
  if (!is_dead()) read_up_to(open ? kReadBytesPerTurn : SIZE_MAX);
  if (is_dead()) return;
  if (!open) return die(closed_by_peer());
  if (!outbox().empty()) transport_->mark_dirty(this);  // there may be room
}

absl::Status Connection::write() {
  if (socket_error_ != 0) return broken(socket_error_);
  if (outbox().empty() || !out_.has_value()) return absl::OkStatus();
  out_->wait_no_more();
  while (!outbox().empty()) {
    const ConstBytes bytes = outbox().next();
    const std::optional<size_t> room = out_->room(std::min(bytes.size(), kPiece));
    if (!room.has_value()) {
      return absl::DataLossError(absl::StrCat(peer().address, ": ", invalid_position().message()));
    }
    if (*room == 0) {
      if (out_->publish()) wake_peer();
      if (out_->wait_for_room()) return absl::OkStatus();
      continue;
    }
    const size_t size = std::min({bytes.size(), *room, kPiece});
    out_->append(bytes.first(size));
    if (outbox().drop(size)) out_->align();
    if (out_->unpublished() >= kPiece && out_->publish()) wake_peer();
  }
  if (out_->unpublished() > 0 && out_->publish()) wake_peer();
  return absl::OkStatus();
}

void Connection::read() {
  read_up_to(kReadBytesPerTurn);
  if (!is_dead() && out_.has_value() && out_->has_room()) transport_->mark_dirty(this);
}

void Connection::read_up_to(size_t most) {
  if (!is_up()) return;
  size_t total = 0;
  while (!is_dead()) {
    if (total >= most) {
      transport_->schedule_read(this);
      break;
    }
    const absl::StatusOr<size_t> got = read_piece();
    if (!got.ok()) return refuse(got.status());
    if (*got == 0) break;
    total += *got;
    if (in_->unreleased() >= kPiece && in_->release()) wake_peer();
  }
  if (total == 0) return;
  heard();
  if (in_->unreleased() >= kAlignment && in_->release()) wake_peer();
}

// Reads a header or a piece of a payload. Returns the number of bytes read; 0: none have arrived.
absl::StatusOr<size_t> Connection::read_piece() {
  if (!incoming_.has_value()) return read_header();
  const MutableBytes missing = incoming_->payload.bytes().subspan(incoming_->filled);
  const std::optional<size_t> available = in_->available(std::min(missing.size(), kPiece));
  if (!available.has_value()) return invalid_position();
  const size_t size = std::min({missing.size(), *available, kPiece});
  in_->take(missing.first(size));
  incoming_->filled += size;
  if (size == missing.size()) finish_frame();
  return size;
}

absl::StatusOr<size_t> Connection::read_header() {
  const std::optional<size_t> available = in_->available(wire::kHeaderBytes);
  if (available == size_t{0}) return size_t{0};
  // A writer publishes headers whole.
  if (!available.has_value() || *available < wire::kHeaderBytes) return invalid_position();
  std::array<std::byte, wire::kHeaderBytes> bytes;  // checks a copy, which the peer can't change
  in_->take(bytes);
  GLN_ASSIGN_OR_RETURN(wire::Header header, wire::decode_header(bytes));
  header.payload_crc = 0;  // payloads are not checked here
  incoming_.emplace(Incoming{header, {}});
  if (header.payload_bytes == 0) {
    finish_frame();
    return wire::kHeaderBytes;
  }
  GLN_ASSIGN_OR_RETURN(incoming_->payload, place(header));
  return wire::kHeaderBytes;
}

void Connection::finish_frame() {
  in_->align();
  Incoming frame = *std::exchange(incoming_, std::nullopt);
  handle(frame.header, std::move(frame.payload));
}

// An error is ignored: either the peer has unread packets, which wake it, too, or its process has ended, which the
// socket shows.
void Connection::wake_peer() {
  const std::byte wake{1};
  (void)send_packet(socket(), std::span(&wake, 1));
}

}  // namespace gleaner::transport::shm
