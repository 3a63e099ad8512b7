// The state of an Engine. Private to this folder: frames.cc checks frames, engine.cc carries them out, accumulate.cc
// does so for tensors that accumulate.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/block_size.h"
#include "summation-service/engine/accumulate.h"
#include "summation-service/engine/engine.h"
#include "summation-service/engine/releases.h"
#include "summation-service/engine/sum.h"
#include "summation-service/engine/takeover.h"

namespace gleaner::engine {

// A partition's life: results of the steps before `step` are made, here or by an earlier owner, the last of them
// perhaps still retained. During a takeover `step` is that of the worker that is furthest, of those heard.
struct PartitionState {
  uint64_t step = 0;
  Sum* gathering = nullptr;                    // of `step`, once the first contribution is in
  Sum* retained = nullptr;                     // of `step` - 1, until every worker has it
  std::unique_ptr<Takeover> takeover;          // until it is over
  std::unique_ptr<Accumulation> accumulation;  // of a tensor that accumulates, and then nothing else
};

inline wire::PartitionKey key_of(const wire::Header& header) { return {header.step, header.tensor, header.partition}; }

struct Engine::Core {
  Core(const Options& options, const kernels::Kernels* kernels, BufferPool* pool)
      : options_(options), kernels_(kernels), pool_(pool) {}

  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch, Actions& actions);
  absl::Status on_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);

  // Checks that change nothing.
  absl::Status check_peer(uint32_t worker, const wire::Header& header) const;
  absl::Status check_progress(uint32_t worker, const wire::PartitionKey& key) const;
  absl::Status check_op(uint32_t worker, const wire::Header& header) const;
  absl::Status check_handed(uint32_t worker, const wire::Header& header) const;
  absl::StatusOr<bool> is_fenced(uint32_t worker, const wire::Header& header, const wire::PartitionKey& key) const;

  absl::Status take_frame(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  void refuse(uint32_t worker, const wire::Header& header, const absl::Status& why, Actions& actions) const;
  void come_into_force(Actions& actions);
  void tell_plan(uint32_t worker, Actions& actions) const;
  void forget(uint32_t index);
  absl::Status on_numbers(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  absl::Status on_push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  absl::Status on_ack(uint32_t worker, const wire::Header& header, const Buffer& payload, Actions& actions);
  absl::Status on_hand(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  absl::Status on_release(uint32_t worker, const wire::Header& header, const Buffer& payload, Actions& actions);

  // Steps that can't fail any more.
  void push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  void acknowledge(uint32_t worker, const wire::PartitionKey& key, Actions& actions);
  void hear(uint32_t worker, uint32_t index, uint64_t next, Actions& actions);
  void fetch(uint32_t index, Actions& actions);
  void make_sum(uint32_t index, const wire::Header& header, Actions& actions);
  void drop_gathering(uint32_t index);
  void release_retained(uint32_t index, uint32_t worker);
  void drop_retained(uint32_t index);
  void send_result(uint32_t worker, uint32_t index, uint32_t crc, Actions& actions) const;
  wire::Header header_of(wire::FrameType type, const wire::PartitionKey& key) const;

  // Of partitions that accumulate.
  bool accumulates(uint32_t index) const { return partitions_[index].accumulation != nullptr; }
  void begin_accumulation(uint32_t index, bool inherits);
  void forget_accumulation(uint32_t index);
  absl::Status accumulate(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  void keep_until_inherited(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  void contribute(uint32_t worker, uint32_t index, uint64_t step, const Buffer& contribution, Actions& actions);
  void add(uint32_t worker, uint32_t index, const Buffer& contribution);
  void answer_due(uint32_t index, Actions& actions);
  void answer(uint32_t worker, uint32_t index, Actions& actions);
  void hear_version(uint32_t worker, uint32_t index, uint64_t version, Actions& actions);
  void fetch_version(uint32_t index, Actions& actions);
  absl::Status inherit(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions);
  void end_inheritance(uint32_t index, Actions& actions);

  uint32_t index_of(const wire::PartitionKey& key) const { return plan_->index_of(key.tensor, key.partition); }
  uint32_t bytes_of(uint32_t index) const { return plan_->partitions[index].bytes; }
  // What a buffer for it takes of the machine's memory.
  uint64_t memory_of(uint32_t index) const { return block_size(bytes_of(index)); }
  wire::PartitionKey key_of_step(uint32_t index, uint64_t step) const {
    const uint32_t tensor = plan_->partitions[index].tensor;
    return {step, tensor, index - plan_->first_partition[tensor]};
  }

  const Options options_;
  const kernels::Kernels* const kernels_;
  BufferPool* const pool_;
  std::shared_ptr<const plan::Plan> plan_;
  std::shared_ptr<const plan::Plan> prepared_;
  std::vector<PartitionState> partitions_;  // as in the plan; those of other owners are as new
  SumPool sums_;
  Releases releases_;
  std::vector<const std::byte*> sources_;  // scratch of make_sum()
  Counters counters_;
};

}  // namespace gleaner::engine
