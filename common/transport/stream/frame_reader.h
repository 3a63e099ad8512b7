// FrameReader cuts a byte stream into frames. Pure: the caller reads the bytes and provides buffers for payloads.
//
// The caller gets from space() the places for the next bytes, reads some bytes into them, reports their number to
// received(), and then calls next() until it returns false. Small frames are read many at a time, through a staging
// area. The payload of a large frame is read directly into its buffer, together with up to 2 KiB behind it, which
// usually include the next header. Checksums are computed as bytes arrive, while the bytes are in cache. Only the
// constructor allocates.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::transport::stream {

class FrameReader {
 public:
  // Returns a buffer of header.payload_bytes for a payload; an error ends the stream.
  using Allocate = std::function<absl::StatusOr<Buffer>(const wire::Header&)>;

  FrameReader();

  // Returns two places to fill one after the other; one of them may be empty. Call it once before each received().
  std::array<MutableBytes, 2> space();
  void received(size_t bytes);

  struct Frame {
    wire::Header header;
    Buffer payload;
  };
  // Returns true and sets `*frame` if a complete frame has arrived; its payload is checked. Returns false if more bytes
  // are needed: space() is to be called next. An error ends the stream.
  absl::StatusOr<bool> next(const Allocate& allocate, Frame* frame);

  // Returns how many more bytes next() needs at least to return a frame, as far as the reader knows.
  size_t awaited() const { return in_payload_ ? missing().size() : wire::kHeaderBytes - staged(); }

 private:
  // After so many small frames in a row, all bytes go through the staging area.
  static constexpr uint32_t kAmongSmall = 8;
  size_t staged() const { return end_ - begin_; }
  MutableBytes missing() const { return current_.payload.bytes().subspan(filled_); }
  void fill(size_t bytes);  // counts bytes of the payload that are in place, and adds them to crc_
  void fill_from_staging();

  std::vector<std::byte> staging_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool in_payload_ = false;
  uint32_t small_ = kAmongSmall;  // frames since the last large one, up to kAmongSmall
  size_t direct_ = 0;             // payload bytes in the space that space() returned
  Frame current_;
  size_t filled_ = 0;  // of current_.payload
  uint32_t crc_ = 0;   // of the filled_ bytes
};

}  // namespace gleaner::transport::stream
