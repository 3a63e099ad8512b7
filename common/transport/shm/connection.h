// Connection is one connection through shared memory: a Unix socket, and a ring in each direction. shm::Transport
// drives it.
//
// Frames of the handshake are packets of the socket. After the handshake each side makes its own segment (segment.h)
// and offers it to the other side, the server first. A side is up when it has the other side's segment. From then on
// frames go through the rings (ring.h). The socket then only carries wake-ups, which are packets of one byte, and shows
// when the peer's process has ended.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "common/transport/shm/ring.h"
#include "common/transport/shm/segment.h"
#include "common/transport/stream/socket_connection.h"

namespace gleaner::transport::shm {

class Transport;

// The packet that passes a segment's file to the peer.
struct Offer {
  uint32_t magic = 0x534e4c47;  // "GLNS"
  uint32_t version = 1;
  uint64_t ring_bytes = 0;  // size of the ring behind the control page; a multiple of kAlignment
};
static_assert(sizeof(Offer) == 16);

class Connection : public stream::SocketConnection {
 public:
  // For an accepted connection.
  Connection(Transport* transport, Descriptor socket, std::string address, const wire::ServerHandshake& handshake);
  // For a connection that this side makes: `socket` is connected to `address`.
  Connection(Transport* transport, Descriptor socket, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce);
  ~Connection() override;

  Kind kind() const override { return Kind::kShm; }
  Capabilities capabilities() const override { return {.checksums_payload = false}; }

  // The public functions below are for the transport.
  absl::Status watch() override;
  void greet() { connected(); }
  // The functions below need is_up(). has_work() returns whether there are bytes to read, or room that write() waits
  // for.
  bool has_work() const { return in_->has_data() || out_->has_room(); }
  [[nodiscard]] bool prepare_sleep() { return in_->wait_for_data(); }  // false: bytes have arrived meanwhile
  void end_sleep() { in_->wait_no_more(); }

 private:
  // A frame whose header has arrived, and the part of its payload that has.
  struct Incoming {
    wire::Header header;
    Buffer payload;
    size_t filled = 0;
  };

  void push(const wire::Header& header, Buffer payload) override;
  absl::Status write() override;
  void read() override;
  void on_proven() override;
  void on_events(uint32_t events) override;

  void send_frame(const wire::Header& header, ConstBytes payload);
  absl::Status offer();
  bool receive_packets();  // false: the peer has closed the socket
  void on_packet(MutableBytes bytes, Descriptor attached);
  void on_handshake_packet(ConstBytes bytes);
  absl::Status on_offer(ConstBytes bytes, Descriptor attached);
  void read_up_to(size_t most);
  absl::StatusOr<size_t> read_piece();
  absl::StatusOr<size_t> read_header();
  void finish_frame();
  void wake_peer();

  Transport* const transport_;
  const bool accepted_;
  int socket_error_ = 0;  // errno of the first packet that could not be sent; 0: none
  std::optional<Segment> own_;
  std::optional<Segment> theirs_;
  size_t own_ring_bytes_ = 0;
  std::optional<Writer> out_;
  std::optional<Reader> in_;
  std::optional<Incoming> incoming_;
};

}  // namespace gleaner::transport::shm
