// A packet is the contents of a SEND: a header, then items. Each item is a small frame or concerns a large one
// (docs/rdma.md#frames).
//
//   frame       a whole small frame: header and payload
//   offer       the header of a large frame, whose payload waits at the sender; the item's number is the offer's
//   region      a memory region of the item's sender, to which the peer may write; sent once, then named by its index
//   grant       the place for the payload of an offer (a region's index and an offset), and the lane to write it by
//   taken       the payload of an offer has arrived by a lane, and the lane can receive another
//
// If a host has several ports (lane_maker.h), also:
//
//   ask         asks for the peer's ports
//   port        a port of the item's sender, to which lanes can be made
//   invitation  ends the list of ports; has the numbers that prove the identity of both sides when a lane is made
//   lost        this lane has failed, and the connection is about to end
//
// A large frame, for example, takes these steps; only the WRITE moves the payload:
//
//   sender                                                       receiver
//   SEND offer {number, header}                        -->
//                                                      <--       SEND region {index, address, remote key}, once
//                                                      <--       SEND grant {number, region's index, offset, lane}
//   WRITE payload, with the number as immediate value  -->
//                                                      <--       SEND taken {number}, if the payload came by a lane
//
// Packets and immediate values also return credits (slot_credits.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/wire/frame.h"

namespace gleaner::transport::rdma {

// The size of a receive slot, and the number of slots per connection. Both sides must have the same values.
inline constexpr size_t kSlotBytes = 8 << 10;
inline constexpr uint16_t kSlots = 64;
inline constexpr uint16_t kMaxOffers = 24;      // of one sender at a time
inline constexpr uint32_t kMaxRegions = 65536;  // per receiver and lane
inline constexpr uint16_t kMostLanes = 15;      // per connection, not counting its own link, which is lane 0

enum class ItemKind : uint16_t {
  kFrame = 1,
  kOffer = 2,
  kRegion = 3,
  kGrant = 4,
  kTaken = 5,
  kPort = 6,
  kInvitation = 7,
  kLost = 8,
  kAsk = 9
};

struct PacketHeader {
  uint16_t credits = 0;   // slots filled again since the last packet or immediate value
  uint16_t reserved = 0;  // zero
  uint32_t bytes = 0;     // this header included
};
static_assert(sizeof(PacketHeader) == 8);

struct ItemHeader {
  ItemKind kind = ItemKind::kFrame;
  uint16_t number = 0;  // the lane in region and lost, else the offer, if any
  uint32_t bytes = 0;   // of the body, which follows; zeros pad it to a multiple of 8
};
static_assert(sizeof(ItemHeader) == 8);

struct RegionItem {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t key = 0;
  uint32_t index = 0;
};
static_assert(sizeof(RegionItem) == 24);

struct GrantItem {
  uint64_t offset = 0;
  uint32_t region = 0;  // index among the regions of that lane's domain
  uint32_t lane = 0;
};
static_assert(sizeof(GrantItem) == 16);

struct PortItem {
  std::array<uint8_t, 16> address{};  // IPv6, or IPv4 as ::ffff:a.b.c.d
  uint64_t bits_per_second = 0;
  uint16_t port = 0;    // the connection manager's port that accepts lanes; 0: none
  uint8_t is_main = 0;  // 1: the connection itself uses this port
  uint8_t is_ethernet = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(PortItem) == 32);

// Two random numbers, sent over the authenticated connection. The request of a lane has to carry the first, the answer
// the second.
struct InvitationItem {
  std::array<uint8_t, 16> request{};
  std::array<uint8_t, 16> answer{};
};
static_assert(sizeof(InvitationItem) == 32);

// The largest payload of a small frame, which travels within a packet.
inline constexpr size_t kMaxSmallPayload = kSlotBytes - sizeof(PacketHeader) - sizeof(ItemHeader) - wire::kHeaderBytes;

constexpr size_t item_size(size_t bytes) { return sizeof(ItemHeader) + (bytes + 7) / 8 * 8; }

constexpr uint32_t to_immediate(uint16_t offer, uint16_t credits) { return uint32_t{credits} << 16 | offer; }
constexpr uint16_t offer_of(uint32_t immediate) { return static_cast<uint16_t>(immediate); }
constexpr uint16_t credits_of(uint32_t immediate) { return static_cast<uint16_t>(immediate >> 16); }

// Fills one slot with items.
class PacketWriter {
 public:
  explicit PacketWriter(MutableBytes slot = {}) : slot_(slot) {}
  bool fits(size_t item_bytes) const { return size_ + item_size(item_bytes) <= slot_.size(); }
  bool empty() const { return size_ == sizeof(PacketHeader); }
  // Needs fits(first.size() + second.size()).
  void add(ItemKind kind, uint16_t number, ConstBytes first, ConstBytes second = {});
  // Completes the packet in the slot and returns its size.
  size_t finish(uint16_t credits);

 private:
  MutableBytes slot_;
  size_t size_ = sizeof(PacketHeader);
};

// Returns a copy of an item's body, whose size PacketReader::next() has checked.
template <typename Item>
Item read_as(ConstBytes body) {
  Item item;
  std::memcpy(&item, body.data(), sizeof(item));
  return item;
}

// Reads a packet that a peer wrote. Safe for any bytes.
class PacketReader {
 public:
  PacketReader() = default;
  // `bytes` must outlive the reader and its items. InvalidArgument: the bytes are not a packet.
  static absl::StatusOr<PacketReader> open(ConstBytes bytes);
  uint16_t credits() const { return credits_; }

  struct Item {
    ItemKind kind;
    uint16_t number;
    ConstBytes body;
  };
  bool done() const { return rest_.empty(); }
  absl::StatusOr<Item> next();  // needs !done()

 private:
  ConstBytes rest_;
  uint16_t credits_ = 0;
};

}  // namespace gleaner::transport::rdma
