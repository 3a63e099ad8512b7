// Cuts a byte stream into frames. Pure: bytes come by received(), buffers for payloads from the caller.
//
// The caller asks where the next bytes shall go (space()), reads some there, and says how many (received()), which
// gives back one frame at a time. Small frames are cut from a staging area, so that many cost one read; what a payload
// still lacks is read straight into its buffer.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::transport {

class FrameReader {
 public:
  // Gives a payload its buffer of header.payload_bytes; an error ends the stream.
  using Allocate = std::function<absl::StatusOr<Buffer>(const wire::Header&)>;

  FrameReader();

  MutableBytes space();
  void received(size_t bytes);

  struct Frame {
    wire::Header header;
    Buffer payload;
  };
  // True: `frame` is the next whole and checked frame. False: more bytes are needed. An error ends the stream.
  absl::StatusOr<bool> next(const Allocate& allocate, Frame* frame);

 private:
  size_t staged() const { return end_ - begin_; }
  void fill_payload();

  std::vector<std::byte> staging_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool in_payload_ = false;
  Frame current_;
  size_t filled_ = 0;  // of current_.payload
};

}  // namespace gleaner::transport
