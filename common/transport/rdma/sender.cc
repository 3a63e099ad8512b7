#include "common/transport/rdma/sender.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {
namespace {

ConstBytes bytes_of(const wire::Header& header) { return std::as_bytes(std::span(&header, 1)); }

// Returns a copy in memory that is registered in the domain.
absl::StatusOr<Buffer> copy_of(const Buffer& payload, Domain& domain) {
  GLN_ASSIGN_OR_RETURN(Buffer copy, domain.stage(payload.size()));
  std::memcpy(copy.bytes().data(), payload.bytes().data(), payload.size());
  return copy;
}

}  // namespace

Sender::Sender(Domain* domain, const LaneTable* lanes, SlotCredits* credits, MutableBytes slots, uint32_t slots_key,
               bool checksums)
    : domain_(domain), lanes_(lanes), credits_(credits), slots_(slots), slots_key_(slots_key), checksums_(checksums) {
  for (size_t i = 0; i < kSendSlots; ++i) free_slots_[i] = static_cast<uint16_t>(i);
}

void Sender::push(const wire::Header& header, Buffer payload) {
  FrameQueue::Frame& frame = frames_.push(header, std::move(payload));
  if (is_small(frame.payload) || checksums_) {
    wire::seal(frame.header, frame.payload.bytes());
  } else {
    wire::seal_unchecked(frame.header, frame.payload.size());
  }
  queued_bytes_ += wire::kHeaderBytes + frame.payload.size();
}

void Sender::grant(uint16_t offer, uint16_t lane, const Region& region, uint64_t offset) {
  std::vector<uint64_t>& announced = announced_[lane];
  if (announced.size() <= region.index()) announced.resize(region.index() + 1);
  if (std::exchange(announced[region.index()], region.number()) != region.number()) {
    items_.push(ItemKind::kRegion, lane,
                RegionItem{region.address(), region.bytes(), region.remote_key(), region.index()});
  }
  items_.push(ItemKind::kGrant, offer, GrantItem{offset, region.index(), lane});
}

absl::Status Sender::on_grant(uint16_t number, const GrantItem& grant) {
  if (number >= kMaxOffers || offers_[number].bytes == 0 || offers_[number].granted) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer granted offer ", number, ", which does not wait for a grant"));
  }
  if (grant.lane > kMostLanes || (grant.lane > 0 && (*lanes_)[grant.lane] == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("the peer granted lane ", grant.lane, ", which does not exist"));
  }
  OfferedFrame& offer = offers_[number];
  GLN_ASSIGN_OR_RETURN(offer.target, remote_regions_.find(grant, offer.payload.size()));
  offer.lane = static_cast<uint16_t>(grant.lane);
  offer.granted = true;
  if (offer.lane > 0) GLN_RETURN_IF_ERROR(prepare_for(*(*lanes_)[offer.lane], offer));
  granted_[granted_count_++] = number;
  return absl::OkStatus();
}

// Sets the local key of the payload in the lane's domain. Copies a payload that can't be registered there.
absl::Status Sender::prepare_for(Lane& lane, OfferedFrame& offer) {
  const Region* region = lane.domain().region_of(offer.payload);
  if (region == nullptr) {
    GLN_ASSIGN_OR_RETURN(offer.payload, copy_of(offer.payload, lane.domain()));
    region = lane.domain().region_of(offer.payload);
  }
  offer.local_key = region->local_key();
  return absl::OkStatus();
}

absl::Status Sender::on_taken(uint16_t number) {
  if (number >= kMaxOffers || !offers_[number].granted || offers_[number].lane == 0 || offers_[number].taken) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer says that offer ", number, " has arrived, which was not written by a lane"));
  }
  offers_[number].taken = true;
  if (offers_[number].written) free_number(offers_[number]);
  return absl::OkStatus();
}

void Sender::add_write(uint16_t number) {
  const OfferedFrame& offer = offers_[number];
  ibv_send_wr& request = requests_.add({reinterpret_cast<uint64_t>(offer.payload.bytes().data()),
                                        static_cast<uint32_t>(offer.payload.size()), offer.local_key},
                                       static_cast<uint16_t>(kSendSlots + number));
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(to_immediate(number, credits_->take_owed()));
  request.wr.rdma.remote_addr = offer.target.address;
  request.wr.rdma.rkey = offer.target.key;
  credits_->written();
  ++writes_;
}

absl::Status Sender::write_by_lane(uint16_t number) {
  const OfferedFrame& offer = offers_[number];
  const ibv_sge piece{reinterpret_cast<uint64_t>(offer.payload.bytes().data()),
                      static_cast<uint32_t>(offer.payload.size()), offer.local_key};
  const uint32_t immediate = to_immediate(number, credits_->take_owed());
  GLN_RETURN_IF_ERROR((*lanes_)[offer.lane]->write(number, immediate, piece, offer.target.address, offer.target.key));
  credits_->written_elsewhere();
  ++writes_;
  return absl::OkStatus();
}

// Leaves the offers that were granted a lane for write_by_lanes().
void Sender::add_writes() {
  size_t by_lanes = 0;
  for (size_t i = 0; i < granted_count_; ++i) {
    if (offers_[granted_[i]].lane == 0) {
      add_write(granted_[i]);
    } else {
      granted_[by_lanes++] = granted_[i];
    }
  }
  granted_count_ = by_lanes;
}

absl::Status Sender::write_by_lanes() {
  for (size_t i = 0; i < granted_count_; ++i) {
    absl::Status status = write_by_lane(granted_[i]);
    if (status.ok()) continue;
    std::copy(granted_.begin() + static_cast<ptrdiff_t>(i), granted_.begin() + static_cast<ptrdiff_t>(granted_count_),
              granted_.begin());
    granted_count_ -= i;  // the offers that remain, whose payloads no adapter has
    return status;
  }
  granted_count_ = 0;
  return absl::OkStatus();
}

bool Sender::can_add_front(const PacketWriter& packet) const {
  if (frames_.empty()) return false;
  const FrameQueue::Frame& frame = frames_.front();
  if (is_small(frame.payload)) return packet.fits(wire::kHeaderBytes + frame.payload.size());
  return packet.fits(wire::kHeaderBytes) && offers_in_use_ < kMaxOffers && credits_->for_offer();
}

void Sender::add_front(PacketWriter& packet) {
  const FrameQueue::Frame& frame = frames_.front();
  packet.add(ItemKind::kFrame, 0, bytes_of(frame.header), frame.payload.bytes());
  queued_bytes_ -= wire::kHeaderBytes + frame.payload.size();
  frames_.pop();
}

absl::Status Sender::offer_front(PacketWriter& packet) {
  FrameQueue::Frame& frame = frames_.front();
  uint16_t number = 0;
  while (offers_[number].bytes != 0) ++number;  // can_add_front() says that one is free
  const Region* region = domain_->region_of(frame.payload);
  if (region == nullptr) {
    GLN_ASSIGN_OR_RETURN(frame.payload, copy_of(frame.payload, *domain_));
    region = domain_->region_of(frame.payload);
  }
  // Registers the payload with the adapters of all lanes, so that a warm job registers no memory, whichever lane is
  // granted.
  for (const auto& lane : *lanes_) {
    if (lane != nullptr) lane->domain().region_of(frame.payload);
  }
  packet.add(ItemKind::kOffer, number, bytes_of(frame.header));
  OfferedFrame& offer = offers_[number];
  offer.bytes = wire::kHeaderBytes + frame.payload.size();
  offer.payload = std::move(frame.payload);
  offer.local_key = region->local_key();
  ++offers_in_use_;
  credits_->offered();
  frames_.pop();
  return absl::OkStatus();
}

// A packet with frames may have to wait in its slot at the peer, so it needs more credits than a packet without.
absl::Status Sender::fill(PacketWriter& packet, bool with_data) {
  items_.move_to(packet);
  while (with_data && can_add_front(packet)) {
    if (is_small(frames_.front().payload)) {
      add_front(packet);
    } else {
      GLN_RETURN_IF_ERROR(offer_front(packet));
    }
  }
  return absl::OkStatus();
}

absl::Status Sender::add_packets() {
  while (free_slot_count_ > 0) {
    const uint16_t slot = free_slots_[free_slot_count_ - 1];
    PacketWriter packet(slots_.subspan(slot * kSlotBytes, kSlotBytes));
    const bool with_data = credits_->for_data() && can_add_front(packet);
    const bool with_items = !items_.empty() && credits_->for_grants();
    const bool returns = credits_->owes_many() && credits_->for_return();
    if (!with_data && !with_items && !returns) break;
    --free_slot_count_;
    credits_->spend();
    if (with_data || with_items) GLN_RETURN_IF_ERROR(fill(packet, with_data));
    const size_t size = packet.finish(credits_->take_owed());
    ibv_send_wr& request = requests_.add(
        {reinterpret_cast<uint64_t>(slots_.data() + slot * kSlotBytes), static_cast<uint32_t>(size), slots_key_}, slot);
    request.opcode = IBV_WR_SEND;
  }
  return absl::OkStatus();
}

absl::Status Sender::post(ibv_qp* pair) {
  add_writes();
  GLN_RETURN_IF_ERROR(add_packets());
  GLN_RETURN_IF_ERROR(requests_.post(pair));
  return write_by_lanes();
}

void Sender::on_completed(uint64_t number) {
  requests_.complete(number, [this](uint16_t resource) {
    if (resource < kSendSlots) {
      free_slots_[free_slot_count_++] = resource;
      return;
    }
    OfferedFrame& offer = offers_[resource - kSendSlots];
    release_payload(offer);
    free_number(offer);
  });
}

void Sender::on_lane_completed(uint16_t number) {
  OfferedFrame& offer = offers_[number];
  release_payload(offer);
  offer.written = true;
  if (offer.taken) free_number(offer);
}

// Releases the payload, which the adapter has read.
void Sender::release_payload(OfferedFrame& offer) {
  queued_bytes_ -= offer.bytes;
  offer.payload = {};
  --writes_;
}

void Sender::free_number(OfferedFrame& offer) {
  offer = {};
  --offers_in_use_;
}

void Sender::drop_waiting() {
  while (!frames_.empty()) frames_.pop();
  for (size_t i = 0; i < granted_count_; ++i) offers_[granted_[i]].granted = false;
  granted_count_ = 0;
  for (OfferedFrame& offer : offers_) {
    if (!offer.granted) offer.payload = {};
  }
}

void Sender::clear() {
  drop_waiting();
  for (OfferedFrame& offer : offers_) offer = {};
  items_.clear();
  queued_bytes_ = offers_in_use_ = writes_ = 0;
}

}  // namespace gleaner::transport::rdma
