// Functions that send and receive packets between processes of one host, over a connected SOCK_SEQPACKET socket. A
// packet may carry a file descriptor. The functions never block and may be called from any thread.
#pragma once

#include <cstddef>

#include "common/base/bytes.h"
#include "common/base/descriptor.h"

namespace gleaner {

// Sends a packet, with the descriptor `attached` unless it is -1. Returns 0 or an errno. EAGAIN: the socket is full,
// because the peer has not read earlier packets.
int send_packet(const Descriptor& socket, ConstBytes bytes, int attached = -1);

struct ReceivedPacket {
  enum class Kind { kPacket, kNothing, kClosed } kind = Kind::kNothing;
  size_t bytes = 0;     // number of bytes written to `into`; the rest of a longer packet is lost
  Descriptor attached;  // the descriptor that the packet carried, if any
};
ReceivedPacket receive_packet(const Descriptor& socket, MutableBytes into);

}  // namespace gleaner
