// Cuts a byte stream into frames. Pure: bytes come by received(), buffers for payloads from the caller.
//
// The caller asks where the next bytes shall go (space()), reads some there, and says how many (received()); next()
// then gives one frame at a time. Among small frames, many are read at once into a staging area; among large ones, each
// payload is read straight into its buffer, together with a little of what is behind it: the next header, and small
// frames before that. Checksums are taken of bytes as they come, while they are in cache. Only making a reader
// allocates.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::transport::remote {

class FrameReader {
 public:
  // Gives a payload its buffer of header.payload_bytes; an error ends the stream.
  using Allocate = std::function<absl::StatusOr<Buffer>(const wire::Header&)>;

  FrameReader();

  // Two places to be filled one after the other; either may be empty, not both. Ask once per received().
  std::array<MutableBytes, 2> space();
  void received(size_t bytes);

  struct Frame {
    wire::Header header;
    Buffer payload;
  };
  // True: `frame` is the next whole and checked frame. False: more bytes are needed, and space() may be asked. An error
  // ends the stream.
  absl::StatusOr<bool> next(const Allocate& allocate, Frame* frame);

  // Bytes without which next() will not give a frame, as far as is known.
  size_t awaited() const { return in_payload_ ? missing().size() : wire::kHeaderBytes - staged(); }

 private:
  static constexpr uint32_t kAmongSmall = 8;  // from so many small frames in a row on
  size_t staged() const { return end_ - begin_; }
  MutableBytes missing() const { return current_.payload.bytes().subspan(filled_); }
  void fill(size_t bytes);  // that many more bytes of the payload are in place
  void fill_from_staging();

  std::vector<std::byte> staging_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool in_payload_ = false;
  uint32_t small_ = kAmongSmall;  // frames since the last large one
  size_t direct_ = 0;             // of the bytes that space() asked for, those of the payload
  Frame current_;
  size_t filled_ = 0;  // of current_.payload
  uint32_t crc_ = 0;   // of what is filled
};

}  // namespace gleaner::transport::remote
