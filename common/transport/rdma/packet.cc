#include "common/transport/rdma/packet.h"

#include <cassert>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gleaner::transport::rdma {
namespace {

size_t body_size(ItemKind kind, size_t bytes) {
  switch (kind) {
    case ItemKind::kFrame:
      return std::max(bytes, wire::kHeaderBytes);
    case ItemKind::kOffer:
      return wire::kHeaderBytes;
    case ItemKind::kRegion:
      return sizeof(RegionItem);
    case ItemKind::kGrant:
      return sizeof(GrantItem);
    case ItemKind::kPort:
      return sizeof(PortItem);
    case ItemKind::kInvitation:
      return sizeof(InvitationItem);
    case ItemKind::kTaken:
    case ItemKind::kLost:
    case ItemKind::kAsk:
      return 0;
  }
  return SIZE_MAX;
}

}  // namespace

void PacketWriter::add(ItemKind kind, uint16_t number, ConstBytes first, ConstBytes second) {
  const size_t bytes = first.size() + second.size();
  assert(fits(bytes));
  const ItemHeader header{kind, number, static_cast<uint32_t>(bytes)};
  std::byte* at = slot_.data() + size_;
  std::memcpy(at, &header, sizeof(header));
  at += sizeof(header);
  if (!first.empty()) std::memcpy(at, first.data(), first.size());
  if (!second.empty()) std::memcpy(at + first.size(), second.data(), second.size());
  std::memset(at + bytes, 0, item_size(bytes) - sizeof(header) - bytes);
  size_ += item_size(bytes);
}

size_t PacketWriter::finish(uint16_t credits) {
  const PacketHeader header{credits, 0, static_cast<uint32_t>(size_)};
  std::memcpy(slot_.data(), &header, sizeof(header));
  return size_;
}

absl::StatusOr<PacketReader> PacketReader::open(ConstBytes bytes) {
  PacketHeader header;
  if (bytes.size() < sizeof(header)) return absl::InvalidArgumentError("the packet is shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.bytes != bytes.size() || header.reserved != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the packet has ", bytes.size(), " bytes, but its header says ", header.bytes));
  }
  PacketReader reader;
  reader.rest_ = bytes.subspan(sizeof(header));
  reader.credits_ = header.credits;
  return reader;
}

absl::StatusOr<PacketReader::Item> PacketReader::next() {
  ItemHeader header;
  if (rest_.size() < sizeof(header)) return absl::InvalidArgumentError("the packet ends within an item's header");
  std::memcpy(&header, rest_.data(), sizeof(header));
  if (header.bytes != body_size(header.kind, header.bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("the packet has an item of kind ", static_cast<int>(header.kind),
                                                   " and ", header.bytes, " bytes"));
  }
  if (item_size(header.bytes) > rest_.size()) return absl::InvalidArgumentError("the packet ends within an item");
  const Item item{header.kind, header.number, rest_.subspan(sizeof(header), header.bytes)};
  rest_ = rest_.subspan(item_size(header.bytes));
  return item;
}

}  // namespace gleaner::transport::rdma
