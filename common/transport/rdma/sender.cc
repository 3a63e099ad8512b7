#include "common/transport/rdma/sender.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {
namespace {

constexpr size_t kFirstFrames = 16;
constexpr uint64_t kSignalEvery = 8;

ConstBytes bytes_of(const wire::Header& header) { return std::as_bytes(std::span(&header, 1)); }

// In memory that the domain's adapter can read.
absl::StatusOr<Buffer> copy_of(const Buffer& payload, Domain& domain) {
  GLN_ASSIGN_OR_RETURN(Buffer copy, domain.stage(payload.size()));
  std::memcpy(copy.bytes().data(), payload.bytes().data(), payload.size());
  return copy;
}

}  // namespace

Sender::Sender(Domain* domain, const LaneTable* lanes, Credits* credits, MutableBytes slots, uint32_t slots_key,
               bool checksums)
    : domain_(domain), lanes_(lanes), credits_(credits), slots_(slots), slots_key_(slots_key), checksums_(checksums) {
  for (size_t i = 0; i < kSendSlots; ++i) free_slots_[i] = static_cast<uint16_t>(i);
  controls_.reserve(size_t{4} * kMaxOffers);
}

void Sender::push(const wire::Header& header, Buffer payload) {
  if (end_ - first_ == frames_.size()) grow();
  Frame& frame = frames_[end_++ & (frames_.size() - 1)];
  frame.header = header;
  frame.payload = std::move(payload);
  if (is_small(frame.payload) || checksums_) {
    wire::seal(frame.header, frame.payload.bytes());
  } else {
    wire::seal_unchecked(frame.header, frame.payload.size());
  }
  queued_bytes_ += wire::kHeaderBytes + frame.payload.size();
}

void Sender::grow() {
  std::vector<Frame> larger(std::max(kFirstFrames, frames_.size() * 2));
  for (uint64_t i = first_; i != end_; ++i) {
    larger[i & (larger.size() - 1)] = std::move(frames_[i & (frames_.size() - 1)]);
  }
  frames_ = std::move(larger);
}

void Sender::pop() {
  front().payload = {};
  ++first_;
}

void Sender::grant(uint16_t offer, uint16_t lane, const Region& region, uint64_t offset) {
  std::vector<uint64_t>& told = told_[lane];
  if (told.size() <= region.index()) told.resize(region.index() + 1);
  if (std::exchange(told[region.index()], region.number()) != region.number()) {
    tell(ItemKind::kRegion, lane, RegionItem{region.address(), region.bytes(), region.remote_key(), region.index()});
  }
  tell(ItemKind::kGrant, offer, GrantItem{offset, region.index(), lane});
}

absl::Status Sender::on_region(uint16_t lane, const RegionItem& region) {
  if (region.index >= kMaxRegions || lane > kMostLanes) {
    return absl::InvalidArgumentError(absl::StrCat("a region with index ", region.index, " of lane ", lane));
  }
  std::vector<RemoteRegion>& remote = remote_[lane];
  if (remote.size() <= region.index) remote.resize(region.index + 1);
  remote[region.index] = {region.address, region.bytes, region.key};
  return absl::OkStatus();
}

absl::Status Sender::on_grant(uint16_t number, const GrantItem& grant) {
  if (number >= kMaxOffers || offers_[number].bytes == 0 || offers_[number].granted) {
    return absl::InvalidArgumentError(absl::StrCat("a grant for offer ", number, ", which does not wait for one"));
  }
  if (grant.lane > kMostLanes || (grant.lane > 0 && (*lanes_)[grant.lane] == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("a grant of lane ", grant.lane, ", which is not there"));
  }
  Offer& offer = offers_[number];
  const size_t size = offer.payload.size();
  const std::vector<RemoteRegion>& remote = remote_[grant.lane];
  if (grant.region >= remote.size() || remote[grant.region].bytes < size ||
      grant.offset > remote[grant.region].bytes - size) {
    return absl::InvalidArgumentError(absl::StrCat("a grant of region ", grant.region, " at ", grant.offset,
                                                   ", where there is no room for ", size, " bytes"));
  }
  offer.address = remote[grant.region].address + grant.offset;
  offer.key = remote[grant.region].key;
  offer.lane = static_cast<uint16_t>(grant.lane);
  offer.granted = true;
  if (offer.lane > 0) GLN_RETURN_IF_ERROR(prepare_for(*(*lanes_)[offer.lane], offer));
  granted_[granted_count_++] = number;
  return absl::OkStatus();
}

// The payload as the lane's adapter knows it.
absl::Status Sender::prepare_for(Lane& lane, Offer& offer) {
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
    return absl::InvalidArgumentError(absl::StrCat("offer ", number, " is said to have come, and was not written"));
  }
  offers_[number].taken = true;
  if (offers_[number].written) free_number(offers_[number]);
  return absl::OkStatus();
}

ibv_send_wr& Sender::next_request(ibv_sge sge) {
  pieces_[request_count_] = sge;
  ibv_send_wr& request = requests_[request_count_];
  request = {};
  request.wr_id = posted_;
  request.sg_list = &pieces_[request_count_];
  request.num_sge = 1;
  if (posted_ % kSignalEvery == 0) request.send_flags = IBV_SEND_SIGNALED;
  if (request_count_ > 0) requests_[request_count_ - 1].next = &request;
  ++request_count_;
  ++posted_;
  return request;
}

void Sender::add_write(uint16_t number) {
  const Offer& offer = offers_[number];
  in_flight_[posted_ % in_flight_.size()] = static_cast<uint16_t>(kSendSlots + number);
  ibv_send_wr& request = next_request({reinterpret_cast<uint64_t>(offer.payload.bytes().data()),
                                       static_cast<uint32_t>(offer.payload.size()), offer.local_key});
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(to_immediate(number, credits_->take_owed()));
  request.wr.rdma.remote_addr = offer.address;
  request.wr.rdma.rkey = offer.key;
  credits_->written();
  ++writes_;
}

absl::Status Sender::write_by_lane(uint16_t number) {
  const Offer& offer = offers_[number];
  const ibv_sge piece{reinterpret_cast<uint64_t>(offer.payload.bytes().data()),
                      static_cast<uint32_t>(offer.payload.size()), offer.local_key};
  const uint32_t immediate = to_immediate(number, credits_->take_owed());
  GLN_RETURN_IF_ERROR((*lanes_)[offer.lane]->write(number, immediate, piece, offer.address, offer.key));
  credits_->written_elsewhere();
  ++writes_;
  return absl::OkStatus();
}

// Those that go by lanes stay: write_by_lanes() has them.
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
    granted_count_ -= i;  // no adapter has these
    return status;
  }
  granted_count_ = 0;
  return absl::OkStatus();
}

bool Sender::can_add_front(const PacketWriter& packet) const {
  if (first_ == end_) return false;
  const Frame& frame = frames_[first_ & (frames_.size() - 1)];
  if (is_small(frame.payload)) return packet.fits(wire::kHeaderBytes + frame.payload.size());
  return packet.fits(wire::kHeaderBytes) && offers_in_use_ < kMaxOffers && credits_->for_offer();
}

void Sender::add_front(PacketWriter& packet) {
  const Frame& frame = front();
  packet.add(ItemKind::kFrame, 0, bytes_of(frame.header), frame.payload.bytes());
  queued_bytes_ -= wire::kHeaderBytes + frame.payload.size();
  pop();
}

absl::Status Sender::offer_front(PacketWriter& packet) {
  Frame& frame = front();
  uint16_t number = 0;
  while (offers_[number].bytes != 0) ++number;  // one is free: can_add_front()
  const Region* region = domain_->region_of(frame.payload);
  if (region == nullptr) {
    GLN_ASSIGN_OR_RETURN(frame.payload, copy_of(frame.payload, *domain_));
    region = domain_->region_of(frame.payload);
  }
  // Whichever is to take it then has it registered already, and a warm job registers nothing.
  for (const auto& lane : *lanes_) {
    if (lane != nullptr) lane->domain().region_of(frame.payload);
  }
  packet.add(ItemKind::kOffer, number, bytes_of(frame.header));
  Offer& offer = offers_[number];
  offer.bytes = wire::kHeaderBytes + frame.payload.size();
  offer.payload = std::move(frame.payload);
  offer.local_key = region->local_key();
  ++offers_in_use_;
  credits_->offered();
  pop();
  return absl::OkStatus();
}

void Sender::add_controls(PacketWriter& packet) {
  for (; controls_sent_ < controls_.size(); ++controls_sent_) {
    const Control& control = controls_[controls_sent_];
    if (!packet.fits(control.size)) return;
    packet.add(control.kind, control.number, ConstBytes(control.body).first(control.size));
  }
  controls_.clear();
  controls_sent_ = 0;
}

// A packet with frames in it may have to wait at the peer, so it needs more credit than one without.
absl::Status Sender::fill(PacketWriter& packet, bool with_data) {
  add_controls(packet);
  while (with_data && can_add_front(packet)) {
    if (is_small(front().payload)) {
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
    const bool with_controls = !controls_.empty() && credits_->for_grants();
    const bool returns = credits_->owes_many() && credits_->for_return();
    if (!with_data && !with_controls && !returns) break;
    --free_slot_count_;
    credits_->spend();
    if (with_data || with_controls) GLN_RETURN_IF_ERROR(fill(packet, with_data));
    const size_t size = packet.finish(credits_->take_owed());
    in_flight_[posted_ % in_flight_.size()] = slot;
    ibv_send_wr& request = next_request(
        {reinterpret_cast<uint64_t>(slots_.data() + slot * kSlotBytes), static_cast<uint32_t>(size), slots_key_});
    request.opcode = IBV_WR_SEND;
  }
  return absl::OkStatus();
}

absl::Status Sender::post(ibv_qp* pair) {
  add_writes();
  GLN_RETURN_IF_ERROR(add_packets());
  if (request_count_ > 0) GLN_RETURN_IF_ERROR(give(pair));
  return write_by_lanes();
}

absl::Status Sender::give(ibv_qp* pair) {
  requests_[request_count_ - 1].send_flags |= IBV_SEND_SIGNALED;
  request_count_ = 0;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(pair, requests_.data(), &bad);
  return error == 0 ? absl::OkStatus() : verbs_error(error, "can't give the adapter more to send");
}

void Sender::on_completed(uint64_t number) {
  for (; completed_ <= number; ++completed_) {
    const uint16_t what = in_flight_[completed_ % in_flight_.size()];
    if (what < kSendSlots) {
      free_slots_[free_slot_count_++] = what;
      continue;
    }
    Offer& offer = offers_[what - kSendSlots];
    let_go(offer);
    free_number(offer);
  }
}

void Sender::on_lane_completed(uint16_t number) {
  Offer& offer = offers_[number];
  let_go(offer);
  offer.written = true;
  if (offer.taken) free_number(offer);
}

// The adapter has read the payload.
void Sender::let_go(Offer& offer) {
  queued_bytes_ -= offer.bytes;
  offer.payload = {};
  --writes_;
}

void Sender::free_number(Offer& offer) {
  offer = {};
  --offers_in_use_;
}

void Sender::drop_waiting() {
  while (first_ != end_) pop();
  for (size_t i = 0; i < granted_count_; ++i) offers_[granted_[i]].granted = false;
  granted_count_ = 0;
  for (Offer& offer : offers_) {
    if (!offer.granted) offer.payload = {};
  }
}

void Sender::clear() {
  drop_waiting();
  for (Offer& offer : offers_) offer = {};
  controls_.clear();
  controls_sent_ = queued_bytes_ = offers_in_use_ = writes_ = 0;
}

}  // namespace gleaner::transport::rdma
