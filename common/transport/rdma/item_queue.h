// ItemQueue holds items (packet.h) that wait for a packet: all items but frames and offers. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class ItemQueue {
 public:
  // Allocates only while more than `expected` items wait.
  explicit ItemQueue(size_t expected) { items_.reserve(expected); }

  template <typename Body>
  void push(ItemKind kind, uint16_t number, const Body& body) {
    static_assert(sizeof(body) <= kMaxBody);
    items_.push_back({kind, number, sizeof(body), {}});
    std::memcpy(items_.back().body.data(), &body, sizeof(body));
  }
  void push(ItemKind kind, uint16_t number) { items_.push_back({kind, number, 0, {}}); }

  bool empty() const { return items_.empty(); }
  // Moves the first items into the packet, as many as fit.
  void move_to(PacketWriter& packet) {
    for (; moved_ < items_.size(); ++moved_) {
      const Item& item = items_[moved_];
      if (!packet.fits(item.size)) return;
      packet.add(item.kind, item.number, ConstBytes(item.body).first(item.size));
    }
    clear();
  }
  void clear() {
    items_.clear();
    moved_ = 0;
  }

 private:
  static constexpr size_t kMaxBody = 32;
  struct Item {
    ItemKind kind;
    uint16_t number;
    size_t size;
    std::array<std::byte, kMaxBody> body;
  };

  std::vector<Item> items_;
  size_t moved_ = 0;  // number of elements of items_ that are in packets
};

}  // namespace gleaner::transport::rdma
