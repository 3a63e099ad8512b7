// One connection through shared memory: the socket it begins with, then a ring each way. Driven by shm::Transport.
//
// The handshake's frames are packets of the socket. Once it is done each side makes its own segment and offers it to
// the other, the server first; a side is up when it has the other's. From then on frames go through the rings, and the
// socket only carries wake-ups (packets of one byte) and tells of the other's end.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "common/transport/remote/connection.h"
#include "common/transport/remote/outbox.h"
#include "common/transport/remote/source.h"
#include "common/transport/shm/ring.h"
#include "common/transport/shm/segment.h"

namespace gleaner::transport::shm {

class Transport;

// The packet that a segment's file comes with.
struct Offer {
  uint32_t magic = 0x534e4c47;  // "GLNS"
  uint32_t version = 1;
  uint64_t ring_bytes = 0;  // behind the control page; a multiple of kAlignment
};
static_assert(sizeof(Offer) == 16);

class Connection : public remote::Connection, private remote::Source {
 public:
  // Accepted.
  Connection(Transport* transport, Descriptor socket, std::string address, const wire::ServerHandshake& handshake);
  // To `address`, whose socket it is.
  Connection(Transport* transport, Descriptor socket, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce);
  ~Connection() override;

  size_t queued_bytes() const override { return outbox_.bytes(); }
  Capabilities capabilities() const override { return {.checksums_payload = false}; }

  // What follows is for the transport.
  absl::Status watch();  // from here on its transport wakes it
  void greet() { connected(); }
  // Of a connection that is up:
  bool has_news() const { return in_->has_news() || out_->has_room(); }
  [[nodiscard]] bool sleep() { return in_->sleep(); }  // false: there are news by now
  void awake() { in_->awake(); }

 private:
  // What a frame's header has promised, and how much of it has come.
  struct Incoming {
    wire::Header header;
    Buffer payload;
    size_t filled = 0;
  };

  void push(const wire::Header& header, Buffer payload) override;
  absl::Status write() override;
  void read() override;
  void let_go() override { outbox_.clear(); }
  void on_proven() override;
  void on_events(uint32_t events) override;

  void send_frame(const wire::Header& header, ConstBytes payload);
  absl::Status offer();
  bool receive_packets();  // false: the other side has closed the socket
  void on_packet(MutableBytes bytes, Descriptor attached);
  void on_handshake_packet(ConstBytes bytes);
  absl::Status on_offer(ConstBytes bytes, Descriptor attached);
  void read_up_to(size_t most);
  absl::StatusOr<size_t> read_piece();
  absl::StatusOr<size_t> read_header();
  void finish_frame();
  void wake_peer();

  Transport* const transport_;
  const Descriptor socket_;
  const bool accepted_;
  int socket_error_ = 0;  // what became of a packet that could not be sent
  std::optional<Segment> own_;
  std::optional<Segment> theirs_;
  size_t own_ring_bytes_ = 0;
  std::optional<Writer> out_;
  std::optional<Reader> in_;
  std::optional<Incoming> incoming_;
  remote::Outbox outbox_{false};
};

}  // namespace gleaner::transport::shm
