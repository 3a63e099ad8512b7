// GpuAgreement is the leader's part of how the local ranks come to sum on their GPUs (docs/local-ranks.md#gpus). No
// I/O: it takes the messages of all ranks, the leader's among them, and returns those to send. A batch is the tensors
// that were registered together, by the id of the first one.
//
//   every rank   GPU       its tensors are on a GPU, where it can sum            all can: OFFER to all
//   every rank   ZONE      shares its zone of a batch                            all have: the ZONEs of the others to
//   all every rank   OPENED    has opened the zones of the others                    all have: USE to all
//
// A rank that can't do its part ends the way of the group, or of the batch: the CPU goes on summing.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/device/device.h"
#include "comm-lib/local/message.h"

namespace gleaner::local {

class GpuAgreement {
 public:
  struct Outgoing {
    uint32_t rank = 0;  // 0: the leader itself
    Message message;
    device::SharedMemory zone{};  // the payload of a ZONE
    ConstBytes payload() const { return message.type == MessageType::kZone ? payload_of(zone) : ConstBytes{}; }
  };

  explicit GpuAgreement(uint32_t ranks) : ranks_(ranks), has_told_(ranks) {}

  void add(uint32_t batch) { batches_[batch].zones.resize(ranks_); }
  // Handles a message of `rank`, and appends the messages that follow. InvalidArgument: the rank violates the protocol.
  absl::Status on_message(uint32_t rank, const Message& message, ConstBytes payload, std::vector<Outgoing>& outgoing);

 private:
  struct Batch {
    std::vector<device::SharedMemory> zones;  // by rank
    uint64_t offered = 0;                     // a bit per rank
    uint64_t opened = 0;
    bool is_dropped = false;
  };
  void on_gpu(uint32_t rank, bool can_sum, std::vector<Outgoing>& outgoing);
  void on_zone(uint32_t rank, uint32_t number, Batch& batch, std::vector<Outgoing>& outgoing) const;
  void on_opened(uint32_t rank, uint32_t number, Batch& batch, std::vector<Outgoing>& outgoing) const;
  bool is_everyone(uint64_t ranks) const {
    return ranks == (ranks_ == 64 ? ~uint64_t{0} : (uint64_t{1} << ranks_) - 1);
  }
  void tell_all(MessageType type, uint32_t batch, std::vector<Outgoing>& outgoing) const;

  const uint32_t ranks_;
  std::vector<bool> has_told_;  // by rank
  uint32_t can_sum_ = 0;        // number of ranks
  std::unordered_map<uint32_t, Batch> batches_;
};

}  // namespace gleaner::local
