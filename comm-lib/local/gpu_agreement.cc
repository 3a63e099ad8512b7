#include "comm-lib/local/gpu_agreement.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

GpuAgreement::Outgoing outgoing_of(uint32_t rank, MessageType type, uint32_t batch) {
  GpuAgreement::Outgoing made{rank, {}, {}};
  made.message.type = type;
  made.message.tensor = batch;
  return made;
}

}  // namespace

absl::Status GpuAgreement::on_message(uint32_t rank, const Message& message, ConstBytes payload,
                                      std::vector<Outgoing>& outgoing) {
  if (message.type == MessageType::kGpu) {
    on_gpu(rank, message.detail != 0, outgoing);
    return absl::OkStatus();
  }
  const auto found = batches_.find(message.tensor);
  if (found == batches_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(local::name_of(message.type), " for tensor ", message.tensor,
                                                   ", with which no registration began"));
  }
  Batch& batch = found->second;
  if (message.type == MessageType::kZone) {
    GLN_RETURN_IF_ERROR(read_payload(payload, batch.zones[rank], message.type));
    on_zone(rank, message.tensor, batch, outgoing);
    return absl::OkStatus();
  }
  batch.is_dropped = batch.is_dropped || message.detail != 0;
  on_opened(rank, message.tensor, batch, outgoing);
  return absl::OkStatus();
}

void GpuAgreement::on_gpu(uint32_t rank, bool can_sum, std::vector<Outgoing>& outgoing) {
  if (has_told_[rank]) return;
  has_told_[rank] = true;
  can_sum_ += can_sum ? 1 : 0;
  if (can_sum && can_sum_ == ranks_) tell_all(MessageType::kOffer, 0, outgoing);
}

// Each rank opens the zones of all others.
void GpuAgreement::on_zone(uint32_t rank, uint32_t number, Batch& batch, std::vector<Outgoing>& outgoing) const {
  batch.offered |= uint64_t{1} << rank;
  if (!is_everyone(batch.offered) || batch.is_dropped) return;
  for (uint32_t to = 0; to < ranks_; ++to) {
    for (uint32_t owner = 0; owner < ranks_; ++owner) {
      if (owner == to) continue;
      Outgoing zone = outgoing_of(to, MessageType::kZone, number);
      zone.message.detail = static_cast<uint8_t>(owner);
      zone.zone = batch.zones[owner];
      outgoing.push_back(zone);
    }
  }
}

void GpuAgreement::on_opened(uint32_t rank, uint32_t number, Batch& batch, std::vector<Outgoing>& outgoing) const {
  batch.opened |= uint64_t{1} << rank;
  if (is_everyone(batch.opened) && !batch.is_dropped) tell_all(MessageType::kUse, number, outgoing);
}

void GpuAgreement::tell_all(MessageType type, uint32_t batch, std::vector<Outgoing>& outgoing) const {
  for (uint32_t rank = 0; rank < ranks_; ++rank) outgoing.push_back(outgoing_of(rank, type, batch));
}

}  // namespace gleaner::local
