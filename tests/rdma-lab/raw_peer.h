// RawPeer: a peer that uses RDMA verbs directly, to violate the protocol.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/base/address.h"
#include "common/base/bytes.h"
#include "common/transport/rdma/connection.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/verbs.h"
#include "common/wire/handshake.h"

namespace gleaner::transport::rdma {

class RawPeer {
 public:
  // Connects with these bytes as greeting, and blocks until that is done, so another thread must poll the other side.
  // If the other side refuses it, connected() is false.
  RawPeer(const Address& address, ConstBytes greeting);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool connected() const { return connected_; }
  const std::string& refusal() const { return refusal_; }

  void send(ConstBytes packet);
  // Send a packet with one item.
  void send_item(ItemKind kind, uint16_t number, ConstBytes body);
  void send_frame(const wire::HandshakeFrame& frame);
  // Waits for the next packet and returns the body of its first item; empty if none arrived within some seconds or the
  // connection has ended.
  std::vector<std::byte> receive();
  // Waits for the next packet and returns the bodies of all its items.
  std::vector<std::vector<std::byte>> receive_all();
  // Writes eight bytes to the peer's memory at `address`. Returns the status of the write.
  ibv_wc_status write(uint64_t address, uint32_t key);

 private:
  bool next_event(rdma_cm_event_type expected);
  ibv_wc_status finish_send();

  EventChannel channel_;
  CmId id_;
  ProtectionDomain domain_;
  CompletionQueue sent_;
  CompletionQueue received_;
  std::vector<std::byte> memory_;
  MemoryRegion region_;
  bool connected_ = false;
  std::string refusal_;
};

}  // namespace gleaner::transport::rdma
