#include "common/transport/rdma/offers.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::transport::rdma {

uint16_t Offers::add(Buffer payload, size_t bytes, uint32_t local_key) {
  uint16_t number = 0;
  while (offers_[number].bytes != 0) ++number;
  offers_[number].payload = std::move(payload);
  offers_[number].bytes = bytes;
  offers_[number].local_key = local_key;
  ++in_use_;
  return number;
}

absl::StatusOr<Offers::Offer*> Offers::find_open(uint16_t number) {
  if (number < kMaxOffers && offers_[number].bytes != 0 && !offers_[number].granted) return &offers_[number];
  return absl::InvalidArgumentError(
      absl::StrCat("the peer granted offer ", number, ", which does not wait for a grant"));
}

void Offers::grant(uint16_t number, uint16_t lane, const RemoteRegions::Target& target) {
  Offer& offer = offers_[number];
  offer.target = target;
  offer.lane = lane;
  offer.granted = true;
  (lane == 0 ? for_link_ : for_lanes_).push(number);
}

absl::Status Offers::on_taken(uint16_t number) {
  if (number >= kMaxOffers || !offers_[number].granted || offers_[number].lane == 0 || offers_[number].taken) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer says that offer ", number, " has arrived, which was not written by a lane"));
  }
  offers_[number].taken = true;
  if (offers_[number].written) free_number(offers_[number]);
  return absl::OkStatus();
}

size_t Offers::on_written(uint16_t number) {
  const size_t bytes = release_payload(offers_[number]);
  free_number(offers_[number]);
  return bytes;
}

size_t Offers::on_written_by_lane(uint16_t number) {
  Offer& offer = offers_[number];
  const size_t bytes = release_payload(offer);
  offer.written = true;
  if (offer.taken) free_number(offer);
  return bytes;
}

size_t Offers::release_payload(Offer& offer) {
  offer.payload = {};
  --writes_;
  return offer.bytes;
}

void Offers::free_number(Offer& offer) {
  offer = {};
  --in_use_;
}

void Offers::drop(Waiting& waiting) {
  for (const uint16_t number : waiting.numbers()) offers_[number].granted = false;
  waiting.drop_first(waiting.numbers().size());
}

void Offers::drop_waiting() {
  drop(for_link_);
  drop(for_lanes_);
  for (Offer& offer : offers_) {
    if (!offer.granted) offer.payload = {};
  }
}

void Offers::clear() {
  drop_waiting();
  for (Offer& offer : offers_) offer = {};
  in_use_ = writes_ = 0;
}

}  // namespace gleaner::transport::rdma
