#include "common/transport/stream/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::transport::stream {
namespace {

constexpr size_t kStagingBytes = 64 << 10;
// For payloads from this size on, a system call costs less than a copy out of the staging area.
constexpr size_t kLargePayload = 32 << 10;
// Bytes to read behind a large payload: enough for some acknowledgements and the next header.
constexpr size_t kBehindLarge = 2 << 10;

}  // namespace

FrameReader::FrameReader() : staging_(kStagingBytes) {}

std::array<MutableBytes, 2> FrameReader::space() {
  // This moves at most a part of a header, since next() has taken all bytes before it.
  std::memmove(staging_.data(), staging_.data() + begin_, staged());
  end_ -= std::exchange(begin_, 0);
  const MutableBytes free = MutableBytes(staging_).subspan(end_);
  if (small_ >= kAmongSmall) {
    direct_ = 0;
    return {MutableBytes{}, free};
  }
  const MutableBytes payload = in_payload_ ? missing() : MutableBytes{};
  direct_ = payload.size();
  return {payload, free.first(kBehindLarge)};
}

void FrameReader::received(size_t bytes) {
  const size_t direct = std::min(bytes, direct_);
  if (direct > 0) fill(direct);
  end_ += bytes - direct;
}

void FrameReader::fill(size_t bytes) {
  crc_ = wire::crc32c(missing().first(bytes), crc_);
  filled_ += bytes;
}

void FrameReader::fill_from_staging() {
  const size_t bytes = std::min(staged(), missing().size());
  if (bytes == 0) return;
  std::memcpy(missing().data(), staging_.data() + begin_, bytes);
  begin_ += bytes;
  fill(bytes);
}

absl::StatusOr<bool> FrameReader::next(const Allocate& allocate, Frame* frame) {
  if (!in_payload_) {
    if (staged() < wire::kHeaderBytes) return false;
    GLN_ASSIGN_OR_RETURN(current_.header, wire::decode_header(std::span<const std::byte, wire::kHeaderBytes>(
                                              staging_.data() + begin_, wire::kHeaderBytes)));
    begin_ += wire::kHeaderBytes;
    current_.payload = {};
    if (current_.header.payload_bytes > 0) {
      GLN_ASSIGN_OR_RETURN(current_.payload, allocate(current_.header));
    }
    filled_ = 0;
    crc_ = 0;
    small_ = current_.payload.size() >= kLargePayload ? 0 : std::min(small_ + 1, kAmongSmall);
    in_payload_ = true;
  }
  fill_from_staging();
  if (filled_ < current_.payload.size()) return false;
  GLN_RETURN_IF_ERROR(wire::check_payload_crc(current_.header, crc_));
  in_payload_ = false;
  *frame = std::exchange(current_, {});
  return true;
}

}  // namespace gleaner::transport::stream
