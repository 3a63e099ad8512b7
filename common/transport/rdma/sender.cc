#include "common/transport/rdma/sender.h"

#include <arpa/inet.h>

#include <cstring>
#include <span>
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
    : domain_(domain), lanes_(lanes), credits_(credits), checksums_(checksums), slots_(slots, slots_key) {}

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
  if (announced_.add(lane, region.index(), region.number())) {
    items_.push(ItemKind::kRegion, lane,
                RegionItem{region.address(), region.bytes(), region.remote_key(), region.index()});
  }
  items_.push(ItemKind::kGrant, offer, GrantItem{offset, region.index(), lane});
}

absl::Status Sender::on_grant(uint16_t number, const GrantItem& grant) {
  GLN_ASSIGN_OR_RETURN(Offers::Offer* const offer, offers_.find_open(number));
  if (grant.lane > kMostLanes || (grant.lane > 0 && (*lanes_)[grant.lane] == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("the peer granted lane ", grant.lane, ", which does not exist"));
  }
  GLN_ASSIGN_OR_RETURN(const RemoteRegions::Target target, remote_regions_.find(grant, offer->payload.size()));
  if (grant.lane > 0) GLN_RETURN_IF_ERROR(prepare_for(*(*lanes_)[grant.lane], *offer));
  offers_.grant(number, static_cast<uint16_t>(grant.lane), target);
  return absl::OkStatus();
}

// Sets the local key of the payload in the lane's domain. Copies a payload that can't be registered there.
absl::Status Sender::prepare_for(Lane& lane, Offers::Offer& offer) {
  const Region* region = lane.domain().region_of(offer.payload);
  if (region == nullptr) {
    GLN_ASSIGN_OR_RETURN(offer.payload, copy_of(offer.payload, lane.domain()));
    region = lane.domain().region_of(offer.payload);
  }
  offer.local_key = region->local_key();
  return absl::OkStatus();
}

void Sender::add_write(uint16_t number) {
  const Offers::Offer& offer = offers_.at(number);
  ibv_send_wr& request = requests_.add({reinterpret_cast<uint64_t>(offer.payload.bytes().data()),
                                        static_cast<uint32_t>(offer.payload.size()), offer.local_key},
                                       static_cast<uint16_t>(SendSlots::kCount + number));
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(to_immediate(number, credits_->take_owed()));
  request.wr.rdma.remote_addr = offer.target.address;
  request.wr.rdma.rkey = offer.target.key;
  credits_->written();
}

absl::Status Sender::write_by_lane(uint16_t number) {
  const Offers::Offer& offer = offers_.at(number);
  const ibv_sge piece{reinterpret_cast<uint64_t>(offer.payload.bytes().data()),
                      static_cast<uint32_t>(offer.payload.size()), offer.local_key};
  const uint32_t immediate = to_immediate(number, credits_->take_owed());
  GLN_RETURN_IF_ERROR((*lanes_)[offer.lane]->write(number, immediate, piece, offer.target.address, offer.target.key));
  credits_->written_elsewhere();
  return absl::OkStatus();
}

void Sender::add_writes() {
  const std::span<const uint16_t> waiting = offers_.waiting_for_link();
  for (const uint16_t number : waiting) add_write(number);
  offers_.posted_by_link(waiting.size());
}

absl::Status Sender::write_by_lanes() {
  const std::span<const uint16_t> waiting = offers_.waiting_for_lanes();
  absl::Status status;
  size_t posted = 0;
  while (status.ok() && posted < waiting.size()) {
    status = write_by_lane(waiting[posted]);
    posted += status.ok() ? 1 : 0;
  }
  offers_.posted_by_lanes(posted);
  return status;
}

bool Sender::can_add_front(const PacketWriter& packet) const {
  if (frames_.empty()) return false;
  const FrameQueue::Frame& frame = frames_.front();
  if (is_small(frame.payload)) return packet.fits(wire::kHeaderBytes + frame.payload.size());
  return packet.fits(wire::kHeaderBytes) && !offers_.full() && credits_->for_offer();
}

void Sender::add_front(PacketWriter& packet) {
  const FrameQueue::Frame& frame = frames_.front();
  packet.add(ItemKind::kFrame, 0, bytes_of(frame.header), frame.payload.bytes());
  queued_bytes_ -= wire::kHeaderBytes + frame.payload.size();
  frames_.pop();
}

absl::Status Sender::offer_front(PacketWriter& packet) {
  FrameQueue::Frame& frame = frames_.front();
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
  const size_t bytes = wire::kHeaderBytes + frame.payload.size();
  const uint16_t number = offers_.add(std::move(frame.payload), bytes, region->local_key());
  packet.add(ItemKind::kOffer, number, bytes_of(frame.header));
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
  while (slots_.has_free()) {
    PacketWriter packet(slots_.memory_of(slots_.next()));
    const bool with_data = credits_->for_data() && can_add_front(packet);
    const bool with_items = !items_.empty() && credits_->for_grants();
    const bool returns = credits_->owes_many() && credits_->for_return();
    if (!with_data && !with_items && !returns) break;
    const uint16_t slot = slots_.take();
    credits_->spend();
    if (with_data || with_items) GLN_RETURN_IF_ERROR(fill(packet, with_data));
    const size_t size = packet.finish(credits_->take_owed());
    requests_.add(slots_.piece(slot, size), slot).opcode = IBV_WR_SEND;
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
    if (resource < SendSlots::kCount) {
      slots_.give_back(resource);
    } else {
      queued_bytes_ -= offers_.on_written(static_cast<uint16_t>(resource - SendSlots::kCount));
    }
  });
}

void Sender::drop_waiting() {
  while (!frames_.empty()) frames_.pop();
  offers_.drop_waiting();
}

void Sender::clear() {
  drop_waiting();
  offers_.clear();
  items_.clear();
  queued_bytes_ = 0;
}

}  // namespace gleaner::transport::rdma
