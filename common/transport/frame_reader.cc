#include "common/transport/frame_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::transport {
namespace {

constexpr size_t kStagingBytes = 64 << 10;
// Payloads that lack less than this are read through the staging area, together with the frames behind them.
constexpr size_t kDirectBytes = 8 << 10;

}  // namespace

FrameReader::FrameReader() : staging_(kStagingBytes) {}

MutableBytes FrameReader::space() {
  if (in_payload_ && staged() == 0 && current_.payload.size() - filled_ >= kDirectBytes) {
    return current_.payload.bytes().subspan(filled_);
  }
  if (begin_ > 0) {
    std::memmove(staging_.data(), staging_.data() + begin_, staged());
    end_ -= begin_;
    begin_ = 0;
  }
  return MutableBytes(staging_).subspan(end_);
}

void FrameReader::received(size_t bytes) {
  // space() gave one of two places; which one follows from the same condition.
  if (in_payload_ && staged() == 0 && current_.payload.size() - filled_ >= kDirectBytes) {
    filled_ += bytes;
  } else {
    end_ += bytes;
  }
}

void FrameReader::fill_payload() {
  const size_t bytes = std::min(staged(), current_.payload.size() - filled_);
  std::memcpy(current_.payload.bytes().data() + filled_, staging_.data() + begin_, bytes);
  begin_ += bytes;
  filled_ += bytes;
}

absl::StatusOr<bool> FrameReader::next(const Allocate& allocate, Frame* frame) {
  if (!in_payload_) {
    if (staged() < wire::kHeaderBytes) return false;
    GLN_ASSIGN_OR_RETURN(current_.header, wire::decode_header(std::span<const std::byte, wire::kHeaderBytes>(
                                              staging_.data() + begin_, wire::kHeaderBytes)));
    begin_ += wire::kHeaderBytes;
    current_.payload = {};
    filled_ = 0;
    if (current_.header.payload_bytes > 0) {
      GLN_ASSIGN_OR_RETURN(current_.payload, allocate(current_.header));
    }
    in_payload_ = true;
  }
  if (filled_ < current_.payload.size() && staged() > 0) fill_payload();
  if (filled_ < current_.payload.size()) return false;
  GLN_RETURN_IF_ERROR(wire::check_payload(current_.header, current_.payload.bytes()));
  in_payload_ = false;
  *frame = std::exchange(current_, {});
  return true;
}

}  // namespace gleaner::transport
