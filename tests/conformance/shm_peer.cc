#include "tests/conformance/shm_peer.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <new>

namespace gleaner::transport {

ShmPeer::ShmPeer(const std::string& path) {
  auto socket = shm::connect_to(path);
  EXPECT_TRUE(socket.ok()) << socket.status();
  if (socket.ok()) socket_ = *std::move(socket);
}

void ShmPeer::send(ConstBytes packet, int attached) { EXPECT_EQ(send_packet(socket_, packet, attached), 0); }

void ShmPeer::send(const wire::HandshakeFrame& frame) {
  wire::Header header = frame.header;
  wire::seal(header, frame.payload);
  std::vector<std::byte> packet(wire::kHeaderBytes);
  std::memcpy(packet.data(), &header, wire::kHeaderBytes);
  packet.insert(packet.end(), frame.payload.begin(), frame.payload.end());
  send(packet);
}

bool ShmPeer::answer(wire::ClientHandshake& client, const std::string& packet) {
  if (packet.size() < wire::kHeaderBytes) return false;
  wire::Header header;
  std::memcpy(&header, packet.data(), wire::kHeaderBytes);
  const auto frames = client.on_frame(header, std::as_bytes(std::span(packet)).subspan(wire::kHeaderBytes));
  if (!frames.ok()) return false;
  for (const wire::HandshakeFrame& frame : *frames) send(frame);
  return true;
}

void ShmPeer::offer(size_t ring_bytes) {
  auto own = shm::Segment::create(shm::kControlBytes + ring_bytes, false);
  ASSERT_TRUE(own.ok()) << own.status();
  own_.emplace(*std::move(own));
  auto theirs = shm::Segment::map(Descriptor(fcntl(offered_.get(), F_DUPFD_CLOEXEC, 0)));
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  theirs_.emplace(*std::move(theirs));
  auto* const control = new (memory().data()) shm::Control;
  writer_.emplace(memory().subspan(shm::kControlBytes, ring_bytes), control,
                  reinterpret_cast<const shm::Control*>(theirs_->memory().data()));
  shm::Offer offer;
  offer.ring_bytes = ring_bytes;
  send(std::as_bytes(std::span(&offer, 1)), own_->file());
}

void ShmPeer::write(const wire::Header& header, ConstBytes payload) {
  writer_->append(std::as_bytes(std::span(&header, 1)));
  writer_->append(payload);
  writer_->align();
  if (writer_->publish()) send(std::as_bytes(std::span("!", 1)));
}

}  // namespace gleaner::transport
