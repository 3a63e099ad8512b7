// ShmPeer: a peer over shared memory that a test controls step by step, to violate the protocol.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/base/packet_socket.h"
#include "common/transport/shm/connection.h"
#include "common/transport/shm/ring.h"
#include "common/transport/shm/segment.h"
#include "common/transport/shm/socket.h"
#include "common/wire/handshake.h"
#include "tests/conformance/rig.h"

namespace gleaner::transport {

class ShmPeer {
 public:
  // Connects to the socket at `path`. If that fails, the test fails.
  explicit ShmPeer(const std::string& path);

  void send(ConstBytes packet, int attached = -1);
  void send(const wire::HandshakeFrame& frame);
  // Returns the next packet and its descriptor; calls `poll`, which must poll the other side, until it has arrived.
  // Returns nothing if the other side has closed the socket.
  template <typename Poll>
  std::optional<std::pair<std::string, Descriptor>> receive(Poll poll) {
    for (int i = 0; i < 20'000; ++i) {
      std::string bytes(4096, '\0');
      auto got = receive_packet(socket_, std::as_writable_bytes(std::span(bytes)));
      if (got.kind == ReceivedPacket::Kind::kClosed) return std::nullopt;
      bytes.resize(got.bytes);
      if (got.kind == ReceivedPacket::Kind::kPacket) return std::pair(std::move(bytes), std::move(got.attached));
      poll();
    }
    return std::nullopt;
  }
  // Does the client's part of the handshake and takes the server's offer. Returns whether that succeeded.
  template <typename Poll>
  bool greet(const wire::Secret& secret, Poll poll) {
    wire::ClientHandshake client(kJob, 3, secret, wire::Nonce{4});
    send(client.hello());
    while (!client.done()) {
      const auto packet = receive(poll);
      if (!packet.has_value() || !answer(client, packet->first)) return false;
    }
    auto packet = receive(poll);
    if (!packet.has_value()) return false;
    offered_ = std::move(packet->second);
    return true;
  }
  // Offers a valid segment, after which the connection is up.
  void offer(size_t ring_bytes = size_t{64} << 10);

  const Descriptor& offered() const { return offered_; }  // the server's segment
  MutableBytes memory() const { return own_->memory(); }
  shm::Control& control() const { return *reinterpret_cast<shm::Control*>(own_->memory().data()); }
  shm::Writer& writer() { return *writer_; }
  void leave() { socket_.reset(); }
  void write(const wire::Header& header, ConstBytes payload);  // does not seal the header

 private:
  bool answer(wire::ClientHandshake& client, const std::string& packet);

  Descriptor socket_;
  Descriptor offered_;
  std::optional<shm::Segment> own_;
  std::optional<shm::Segment> theirs_;
  std::optional<shm::Writer> writer_;
};

}  // namespace gleaner::transport
