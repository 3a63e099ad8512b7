// A peer over verbs alone, for what no transport of ours would send.
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
  // Connects with these bytes as its greeting, and waits meanwhile: somebody else has to poll the other side. Not
  // connected afterwards: it was refused.
  RawPeer(const Address& address, ConstBytes greeting);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool connected() const { return connected_; }
  const std::string& refusal() const { return refusal_; }

  void send(ConstBytes packet);
  // As packets with one item each.
  void send_item(ItemKind kind, uint16_t number, ConstBytes body);
  void send_frame(const wire::HandshakeFrame& frame);
  // The body of the first item of the next packet; empty: none came within some seconds, or the connection is over.
  std::vector<std::byte> receive();
  // Those of all of its items.
  std::vector<std::vector<std::byte>> receive_all();
  // Writes eight bytes there; how that ended.
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
