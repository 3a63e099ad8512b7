// Frames that wait to leave as a stream of bytes: through a socket, many frames per system call, or piece by piece.
//
// Payloads are held until their bytes are with the kernel. Once the ring has grown to its working size, nothing
// allocates.
#pragma once

#include <cstddef>
#include <vector>

#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::transport::remote {

class Outbox {
 public:
  // Without `checks_payload`, payloads leave without a checksum.
  explicit Outbox(bool checks_payload = true) : checks_payload_(checks_payload) {}

  // Seals the header.
  void push(const wire::Header& header, Buffer payload);

  // Gives the socket what it takes now, about `limit` bytes at most. Returns 0, or the errno of a broken connection.
  int write_to(int descriptor, size_t limit);

  // For who writes elsewhere: the next bytes that are in one place, if not empty(); drop() tells how many of them have
  // left. It returns true when they ended a frame.
  ConstBytes next();
  bool drop(size_t bytes);

  void clear();
  bool empty() const { return count_ == 0; }
  size_t bytes() const { return bytes_; }  // headers included

 private:
  struct Frame {
    wire::Header header;
    Buffer payload;
    size_t size() const { return wire::kHeaderBytes + payload.size(); }
  };
  Frame& at(size_t index) { return ring_[(head_ + index) & (ring_.size() - 1)]; }
  void grow();

  const bool checks_payload_;
  std::vector<Frame> ring_;  // size: a power of two
  size_t head_ = 0;
  size_t count_ = 0;
  size_t head_written_ = 0;  // bytes of at(0) that have left
  size_t bytes_ = 0;
};

}  // namespace gleaner::transport::remote
