// Packets between processes of one host, by a connected SOCK_SEQPACKET socket, with a descriptor where need be. Never
// waits. Any thread.
#pragma once

#include <cstddef>

#include "common/base/bytes.h"
#include "common/base/descriptor.h"

namespace gleaner {

// Returns 0 or the errno; EAGAIN: the peer has not read what it was sent before.
int send_packet(const Descriptor& socket, ConstBytes bytes, int attached = -1);

struct ReceivedPacket {
  enum class Kind { kPacket, kNothing, kClosed } kind = Kind::kNothing;
  size_t bytes = 0;     // of `into`; more than its size is cut off
  Descriptor attached;  // what came along, if anything
};
ReceivedPacket receive_packet(const Descriptor& socket, MutableBytes into);

}  // namespace gleaner
