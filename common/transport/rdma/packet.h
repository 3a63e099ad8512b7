// What a SEND carries: items behind each other, each of which is a small frame or concerns a large one. docs/rdma.md
// describes them; this is their code.
//
//   frame   a whole frame: header and payload
//   offer   the header of a frame whose payload waits at the sender; its number is the offer's
//   region  memory of the receiver's that the peer may write to: told once, then referred to by its index
//   grant   where the payload of an offer shall be written: a region's index and an offset, and by which lane
//   taken   the payload of an offer has come by a lane, and the lane can receive another
//
// and, where a host has several ports (lane_maker.h):
//
//   ask     which ports there are
//   port    one of the sender's, that lanes may be made to
//   invitation  these were all; what a lane's request and its answer have to know
//   lost    this lane has failed; the connection is about to end
//
// Payloads come by WRITE, and the immediate value of that tells the offer's number. Packets and immediate values also
// tell how many receive slots were filled again since the last: the peer may send as many more.
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

// A receive slot's size, and how many there are per connection. The peer has to have the same.
inline constexpr size_t kSlotBytes = 8 << 10;
inline constexpr uint16_t kSlots = 64;
inline constexpr uint16_t kMaxOffers = 24;      // of one sender at a time
inline constexpr uint32_t kMaxRegions = 65536;  // of one receiver and lane
inline constexpr uint16_t kMostLanes = 15;      // of one connection, beside its own link, which has number 0

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
  uint16_t credits = 0;
  uint16_t reserved = 0;  // zero
  uint32_t bytes = 0;     // this header included
};
static_assert(sizeof(PacketHeader) == 8);

struct ItemHeader {
  ItemKind kind = ItemKind::kFrame;
  uint16_t number = 0;  // of the offer, where one is concerned; of the lane: region, lost
  uint32_t bytes = 0;   // that follow; then as many zeros as make the next item begin at a multiple of 8
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
  uint32_t region = 0;  // of the lane's
  uint32_t lane = 0;
};
static_assert(sizeof(GrantItem) == 16);

struct PortItem {
  std::array<uint8_t, 16> address{};  // IPv6, or IPv4 as ::ffff:a.b.c.d
  uint64_t bits_per_second = 0;
  uint16_t port = 0;    // of the connection manager, where it takes lanes
  uint8_t is_main = 0;  // the connection itself is over this one
  uint8_t is_ethernet = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(PortItem) == 32);

// Two numbers that nobody else can guess: who asks for a lane tells the first, who answers tells the second.
struct InvitationItem {
  std::array<uint8_t, 16> request{};
  std::array<uint8_t, 16> answer{};
};
static_assert(sizeof(InvitationItem) == 32);

// The largest payload that travels within a packet.
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
  // The packet's size; the slot holds it.
  size_t finish(uint16_t credits);

 private:
  MutableBytes slot_;
  size_t size_ = sizeof(PacketHeader);
};

// An item's body, which PacketReader::next() has found to be as long.
template <typename Item>
Item read_as(ConstBytes body) {
  Item item;
  std::memcpy(&item, body.data(), sizeof(item));
  return item;
}

// Reads what a peer wrote: nothing in it is trusted.
class PacketReader {
 public:
  PacketReader() = default;
  // InvalidArgument: no packet. `bytes` stay.
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
