#include "comm-lib/local/channel.h"

#include <cerrno>
#include <utility>

namespace gleaner::local {
void Channel::queue(Message message, ConstBytes payload, Descriptor attached) {
  if (!socket_.valid()) return;
  message.payload_bytes = static_cast<uint32_t>(payload.size());
  const auto size = static_cast<uint32_t>(sizeof(Message) + payload.size());
  const bool joins = sent_packets_ < packets_.size() && !attached.valid() && !packets_.back().attached.valid() &&
                     packets_.back().bytes + size <= kMaxPacket;
  if (!joins) packets_.push_back({0, std::move(attached)});
  packets_.back().bytes += size;
  const auto header = std::as_bytes(std::span(&message, 1));
  bytes_.insert(bytes_.end(), header.begin(), header.end());
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
}

void Channel::flush() {
  while (!drained()) {
    Outgoing& packet = packets_[sent_packets_];
    const int error =
        send_packet(socket_, ConstBytes(bytes_).subspan(sent_bytes_, packet.bytes), packet.attached.get());
    if (error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM) return;
    if (error != 0) break;
    packet.attached.reset();
    sent_bytes_ += packet.bytes;
    ++sent_packets_;
  }
  drop();
}

void Channel::drop() {
  bytes_.clear();
  packets_.clear();
  sent_packets_ = 0;
  sent_bytes_ = 0;
}

Channel::Receipt Channel::receive(Packet& packet) {
  if (!socket_.valid()) return Receipt::kNothing;
  ReceivedPacket got = receive_packet(socket_, incoming_);
  packet.bytes = ConstBytes(incoming_).first(got.bytes);
  packet.attached = std::move(got.attached);
  return got.kind;
}

void Channel::close() {
  socket_.reset();
  drop();
}

}  // namespace gleaner::local
