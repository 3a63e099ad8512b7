#include "common/transport/rdma/receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {
namespace {

constexpr size_t kFirstArrivals = 64;
// The most bytes of large payloads in flight at a time, for each path. A single payload may be larger.
constexpr size_t kGrantedBytes = 8 << 20;

absl::StatusOr<wire::Header> header_of(const PacketReader::Item& item) {
  return wire::decode_header(item.body.first<wire::kHeaderBytes>());
}

}  // namespace

Receiver::Receiver(User* user, Domain* domain, const LaneTable* lanes, SlotCredits* credits, Sender* sender,
                   MutableBytes slots, uint32_t slots_key)
    : user_(user),
      domain_(domain),
      lanes_(lanes),
      credits_(credits),
      sender_(sender),
      slots_(slots),
      slots_key_(slots_key),
      arrivals_(kFirstArrivals) {
  offers_.fill(kNone);
}

absl::Status Receiver::fill(ibv_qp* pair) {
  for (uint16_t i = 0; i < kSlots; ++i) free_[free_count_++] = i;
  return refill(pair);
}

absl::Status Receiver::refill(ibv_qp* pair) {
  if (free_count_ == 0) return absl::OkStatus();
  std::array<ibv_recv_wr, kSlots> requests;
  std::array<ibv_sge, kSlots> pieces;
  for (size_t i = 0; i < free_count_; ++i) {
    pieces[i] = {reinterpret_cast<uint64_t>(slots_.data() + free_[i] * kSlotBytes), kSlotBytes, slots_key_};
    requests[i] = {.wr_id = free_[i], .next = nullptr, .sg_list = &pieces[i], .num_sge = 1};
    if (i > 0) requests[i - 1].next = &requests[i];
  }
  free_count_ = 0;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(pair, requests.data(), &bad);
  return error == 0 ? absl::OkStatus() : verbs_error(error, "the adapter accepts no more receive requests");
}

void Receiver::release(uint16_t slot) {
  if (--uses_[slot] > 0) return;
  free_[free_count_++] = slot;
  credits_->refilled();
}

absl::Status Receiver::on_packet(uint16_t slot, size_t bytes) {
  GLN_ASSIGN_OR_RETURN(PacketReader reader, PacketReader::open(slots_.subspan(slot * kSlotBytes, bytes)));
  if (!credits_->got(reader.credits()))
    return absl::InvalidArgumentError("the peer returned more credits than it has receive slots");
  ++uses_[slot];
  bool says_taken = false;
  while (!reader.done() && user_ != nullptr) {
    GLN_ASSIGN_OR_RETURN(const PacketReader::Item item, reader.next());
    GLN_RETURN_IF_ERROR(on_item(slot, item));
    says_taken = says_taken || item.kind == ItemKind::kTaken;
  }
  if (says_taken) credits_->owes_for_taken();
  release(slot);
  return absl::OkStatus();
}

absl::Status Receiver::on_item(uint16_t slot, const PacketReader::Item& item) {
  if (item.kind == ItemKind::kFrame) return on_frame(slot, item);
  if (!trusted_)
    return absl::InvalidArgumentError("the peer sent an item about memory or lanes before the handshake is done");
  switch (item.kind) {
    case ItemKind::kOffer:
      return on_offer(item);
    case ItemKind::kRegion:
      return sender_->on_region(item.number, read_as<RegionItem>(item.body));
    case ItemKind::kGrant:
      return sender_->on_grant(item.number, read_as<GrantItem>(item.body));
    case ItemKind::kTaken:
      return sender_->on_taken(item.number);
    default:
      return user_->on_lane_item(item);
  }
}

absl::Status Receiver::on_frame(uint16_t slot, const PacketReader::Item& item) {
  GLN_ASSIGN_OR_RETURN(const wire::Header header, header_of(item));
  const ConstBytes payload = item.body.subspan(wire::kHeaderBytes);
  if (header.payload_bytes != payload.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the packet has ", payload.size(), " bytes for a frame's payload of ", header.payload_bytes));
  }
  if (first_ == end_) return hand_on_small(header, payload);
  Arrival& arrival = append();
  arrival.header = header;
  arrival.small = payload;
  arrival.is_small = arrival.granted = arrival.complete = true;
  arrival.number = slot;
  ++uses_[slot];
  return absl::OkStatus();
}

absl::Status Receiver::on_offer(const PacketReader::Item& item) {
  GLN_ASSIGN_OR_RETURN(const wire::Header header, header_of(item));
  if (item.number >= kMaxOffers || offers_[item.number] != kNone || wire::is_handshake(header.type) ||
      header.payload_bytes == 0) {
    return absl::InvalidArgumentError(absl::StrCat("the peer's offer ", item.number, " is not valid"));
  }
  offers_[item.number] = end_;
  Arrival& arrival = append();
  arrival.header = header;
  arrival.number = item.number;
  return grant_more();
}

Receiver::Arrival& Receiver::append() {
  if (end_ - first_ == arrivals_.size()) {
    std::vector<Arrival> larger(arrivals_.size() * 2);
    for (uint64_t i = first_; i != end_; ++i) larger[i & (larger.size() - 1)] = std::move(at(i));
    arrivals_ = std::move(larger);
  }
  Arrival& arrival = at(end_++);
  arrival = {};
  return arrival;
}

absl::Status Receiver::grant_more() {
  for (; next_grant_ < end_ && user_ != nullptr; ++next_grant_) {
    Arrival& arrival = at(next_grant_);
    if (arrival.granted) continue;
    const size_t most = kGrantedBytes * stripe_.paths();
    if (granted_bytes_ > 0 && granted_bytes_ + arrival.header.payload_bytes > most) break;
    GLN_RETURN_IF_ERROR(grant(arrival));
  }
  return absl::OkStatus();
}

absl::Status Receiver::grant(Arrival& arrival) {
  GLN_ASSIGN_OR_RETURN(Buffer buffer, user_->place_payload(arrival.header));
  if (user_ == nullptr) return absl::OkStatus();  // place_payload() has closed the connection
  const Region* region = choose_lane(buffer, arrival.lane);
  if (region == nullptr) {
    Domain& domain = domain_of(arrival.lane);
    GLN_ASSIGN_OR_RETURN(arrival.staged, domain.stage(arrival.header.payload_bytes));
    region = domain.region_of(arrival.staged);
  }
  const Buffer& target = arrival.staged.empty() ? buffer : arrival.staged;
  const auto address = reinterpret_cast<uint64_t>(target.bytes().data());
  arrival.payload = std::move(buffer);
  arrival.granted = true;
  granted_bytes_ += arrival.header.payload_bytes;
  stripe_.started(arrival.lane, arrival.header.payload_bytes);
  sender_->grant(arrival.number, arrival.lane, *region, address - region->address());
  return absl::OkStatus();
}

// Chooses the lane for the payload, and returns the buffer's region in the domain of that lane; null: the buffer can't
// be registered there. Registers the buffer with the adapters of all lanes, so that a warm job registers no memory,
// whichever lane is chosen next.
const Region* Receiver::choose_lane(const Buffer& buffer, uint16_t& lane) {
  const Region* const ours = domain_->region_of(buffer);
  lane = static_cast<uint16_t>(stripe_.choose(buffer.size()));
  const Region* chosen = nullptr;
  for (size_t i = 1; i < lanes_->size(); ++i) {
    if ((*lanes_)[i] == nullptr) continue;
    const Region* const region = (*lanes_)[i]->domain().region_of(buffer);
    if (i == lane) chosen = region;
  }
  if (chosen == nullptr && ours != nullptr) lane = 0;
  return lane == 0 ? ours : chosen;
}

absl::Status Receiver::on_written(uint16_t slot, uint32_t immediate, size_t bytes) {
  if (!credits_->got(credits_of(immediate)))
    return absl::InvalidArgumentError("the peer returned more credits than it has receive slots");
  ++uses_[slot];
  release(slot);
  return on_whole(0, offer_of(immediate), bytes);
}

absl::Status Receiver::on_lane_written(const Lane& lane, uint32_t immediate, size_t bytes) {
  if (!credits_->got(credits_of(immediate)))
    return absl::InvalidArgumentError("the peer returned more credits than it has receive slots");
  const uint16_t number = offer_of(immediate);
  // `taken` is queued before the frame is delivered: the peer may use the number again as soon as the lane can receive.
  sender_->items().push(ItemKind::kTaken, number);
  return on_whole(lane.number(), number, bytes);
}

absl::Status Receiver::on_whole(uint16_t lane, uint16_t number, size_t bytes) {
  if (number >= kMaxOffers || offers_[number] == kNone || !at(offers_[number]).granted ||
      at(offers_[number]).lane != lane) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer wrote a payload for offer ", number, ", which was not granted on this path"));
  }
  Arrival& arrival = at(std::exchange(offers_[number], kNone));
  if (bytes != arrival.header.payload_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer wrote ", bytes, " bytes for a payload of ", arrival.header.payload_bytes));
  }
  arrival.complete = true;
  granted_bytes_ -= bytes;
  if (user_ != nullptr) stripe_.done(lane, bytes, user_->now());
  GLN_RETURN_IF_ERROR(hand_on_ready());
  return grant_more();
}

absl::Status Receiver::hand_on_ready() {
  while (first_ != end_ && at(first_).complete && user_ != nullptr) {
    Arrival arrival = std::exchange(at(first_++), {});
    next_grant_ = std::max(next_grant_, first_);
    if (!arrival.is_small) {
      GLN_RETURN_IF_ERROR(hand_on_large(std::move(arrival)));
      continue;
    }
    GLN_RETURN_IF_ERROR(hand_on_small(arrival.header, arrival.small));
    release(arrival.number);
  }
  return absl::OkStatus();
}

absl::Status Receiver::hand_on_small(const wire::Header& header, ConstBytes payload) {
  if (user_ == nullptr) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(wire::check_payload(header, payload));
  Buffer buffer;
  if (!payload.empty()) {
    GLN_ASSIGN_OR_RETURN(buffer, user_->place_payload(header));
    if (user_ == nullptr) return absl::OkStatus();  // place_payload() has closed the connection
    std::memcpy(buffer.bytes().data(), payload.data(), payload.size());
  }
  user_->hand_on(header, std::move(buffer));
  return absl::OkStatus();
}

absl::Status Receiver::hand_on_large(Arrival arrival) {
  if (!arrival.staged.empty()) {
    std::memcpy(arrival.payload.bytes().data(), arrival.staged.bytes().data(), arrival.staged.size());
  }
  // If there is no checksum, the adapters have checked each packet of the payload.
  if (arrival.header.payload_crc != 0) {
    GLN_RETURN_IF_ERROR(wire::check_payload(arrival.header, arrival.payload.bytes()));
  }
  user_->hand_on(arrival.header, std::move(arrival.payload));
  return absl::OkStatus();
}

void Receiver::clear() {
  for (; first_ != end_; ++first_) at(first_) = {};
  granted_bytes_ = 0;
}

}  // namespace gleaner::transport::rdma
