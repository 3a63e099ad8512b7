#include "common/transport/stream/outbox.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace gleaner::transport::stream {
namespace {

constexpr size_t kMaxPieces = 128;  // iovecs per system call
constexpr size_t kFirstFrames = 16;

}  // namespace

void Outbox::push(const wire::Header& header, Buffer payload) {
  if (count_ == ring_.size()) grow();
  Frame& frame = at(count_++);
  frame.header = header;
  frame.payload = std::move(payload);
  if (checks_payload_) {
    wire::seal(frame.header, frame.payload.bytes());
  } else {
    wire::seal_unchecked(frame.header, frame.payload.size());
  }
  bytes_ += frame.size();
}

void Outbox::grow() {
  std::vector<Frame> larger(std::max(kFirstFrames, ring_.size() * 2));
  for (size_t i = 0; i < count_; ++i) larger[i] = std::move(at(i));
  ring_ = std::move(larger);
  head_ = 0;
}

int Outbox::write_to(int descriptor, size_t limit) {
  for (size_t left = limit; count_ > 0;) {
    iovec pieces[kMaxPieces];
    size_t pieces_used = 0;
    size_t offered = 0;
    size_t skip = head_written_;
    for (size_t i = 0; i < count_ && pieces_used + 2 <= kMaxPieces && offered < left; ++i) {
      Frame& frame = at(i);
      if (skip < wire::kHeaderBytes) {
        pieces[pieces_used++] = {reinterpret_cast<std::byte*>(&frame.header) + skip, wire::kHeaderBytes - skip};
      }
      const size_t payload_skip = skip < wire::kHeaderBytes ? 0 : skip - wire::kHeaderBytes;
      if (payload_skip < frame.payload.size()) {
        const MutableBytes rest = frame.payload.bytes().subspan(payload_skip);
        pieces[pieces_used++] = {rest.data(), rest.size()};
      }
      offered += frame.size() - skip;
      skip = 0;
    }
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = pieces_used;
    const ssize_t written = sendmsg(descriptor, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? 0 : errno;
    }
    const auto taken = static_cast<size_t>(written);
    drop(taken);
    if (taken < offered || taken >= left) return 0;  // the socket is full, or the limit is reached
    left -= taken;
  }
  return 0;
}

ConstBytes Outbox::next() {
  Frame& frame = at(0);
  if (head_written_ < wire::kHeaderBytes) return std::as_bytes(std::span(&frame.header, 1)).subspan(head_written_);
  return frame.payload.bytes().subspan(head_written_ - wire::kHeaderBytes);
}

bool Outbox::drop(size_t bytes) {
  bytes_ -= bytes;
  head_written_ += bytes;
  while (count_ > 0 && head_written_ >= at(0).size()) {
    head_written_ -= at(0).size();
    at(0).payload = {};
    head_ = (head_ + 1) & (ring_.size() - 1);
    --count_;
  }
  return head_written_ == 0;
}

void Outbox::clear() {
  for (size_t i = 0; i < count_; ++i) at(i).payload = {};
  head_ = count_ = head_written_ = bytes_ = 0;
}

}  // namespace gleaner::transport::stream
