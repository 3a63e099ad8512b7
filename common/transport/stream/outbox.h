// Outbox queues frames that leave as a stream of bytes: through a socket, many frames per system call, or piece by
// piece as the caller takes them.
//
// Outbox holds each payload until the payload's bytes have been taken. It allocates only while its ring grows to its
// working size.
#pragma once

#include <cstddef>
#include <vector>

#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::transport::stream {

class Outbox {
 public:
  // `checks_payload`: whether headers carry a checksum of the payload.
  explicit Outbox(bool checks_payload = true) : checks_payload_(checks_payload) {}

  // Queues a frame and seals its header.
  void push(const wire::Header& header, Buffer payload);

  // Writes to the socket the bytes that it accepts now, up to about `limit` bytes. Returns 0, or the errno of a broken
  // connection.
  int write_to(int descriptor, size_t limit);

  // For callers that do not write to a socket. next() returns the next contiguous bytes; needs !empty(). drop() removes
  // bytes that have left, and returns true if they ended a frame.
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

}  // namespace gleaner::transport::stream
