// Channel is a connected SOCK_SEQPACKET socket between two local ranks. It gathers messages into packets and sends them
// without blocking. Belongs to one thread. Once warm it allocates no memory.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "comm-lib/local/message.h"
#include "common/base/descriptor.h"
#include "common/base/packet_socket.h"

namespace gleaner::local {

class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  // Queues a message, with a file descriptor if `attached` is valid. Fills in payload_bytes. Does nothing once closed.
  void queue(Message message, ConstBytes payload = {}, Descriptor attached = {});

  // Sends as many packets as the socket accepts. If the peer is gone, drops the queued ones; receive() reports the
  // loss.
  void flush();
  bool drained() const { return sent_packets_ == packets_.size(); }

  using Receipt = ReceivedPacket::Kind;
  struct Packet {
    ConstBytes bytes;     // valid until the next receive()
    Descriptor attached;  // the descriptor that came with the packet, if any
  };
  Receipt receive(Packet& packet);

  int descriptor() const { return socket_.get(); }  // -1 once closed
  void close();

 private:
  struct Outgoing {
    uint32_t bytes = 0;
    Descriptor attached;
  };
  void drop();

  Descriptor socket_;
  std::vector<std::byte> bytes_;  // of all queued packets, one after the other
  std::vector<Outgoing> packets_;
  size_t sent_packets_ = 0;
  size_t sent_bytes_ = 0;
  std::array<std::byte, kMaxPacket> incoming_;
};

}  // namespace gleaner::local
