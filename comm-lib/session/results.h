// Results counts the results of each partition that this worker has received, and keeps the last ones for other workers
// and for later owners.
//
// Steps. The *step* of a partition is the number of results received so far. It is the step of the partition's piece in
// flight, or else of its next piece.
//
// Retention. A new owner may lack a result that the earlier owner made and did not deliver to every worker. So a result
// is kept until every worker has it (retention.h), and sent to an owner that asks for it (kHand). The last answer of a
// partition that accumulates is kept for the next owner until the job ends (accumulated_answers.h).
//
// Release. An owner says with each result, and in a kRelease, which results every worker has. While no result arrives,
// the session asks owners for a kRelease (release_timer.h).
//
// Partitions are named by their indexes in the plan. Pure; belongs to one thread. Keeps the buffers in which results
// arrived. Once warm, a result costs no allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/exchange/piece_request.h"
#include "comm-lib/session/accumulated_answers.h"
#include "comm-lib/session/frames.h"
#include "comm-lib/session/retention.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

class Results {
 public:
  // `pool` must outlive this object.
  Results(const Identity& identity, BufferPool* pool) : identity_(identity), pool_(pool) {}

  // Brings a plan into force: the first one, or a successor of the last one.
  void apply(std::shared_ptr<const plan::Plan> plan);

  // The functions below need a plan.

  uint64_t step(uint32_t partition) const { return steps_[partition]; }
  bool accumulates(uint32_t partition) const { return plan_->tensors[plan_->partitions[partition].tensor].accumulates; }
  // Returns the progress of this worker with a partition, as kAck tells it: its step, or the version of the last answer
  // if the partition accumulates.
  wire::PartitionKey progress(uint32_t partition) const;

  // Checks the counts in the answer of a partition that accumulates (AccumulatedAnswers::check()). OK for others.
  absl::Status check(uint32_t partition, const wire::Header& header, const Buffer& result) const;
  // Takes the result of the partition's step, which ends the step.
  void take(uint32_t partition, const wire::Header& header, Buffer result);

  // Drops the results of the owner that every worker has, as the owner's kResult says.
  void release(uint32_t owner, const wire::Header& header);
  // Handles a kRelease from the owner. InvalidArgument: the payload is invalid.
  absl::Status on_release(uint32_t owner, const wire::Header& header, const Buffer& payload);
  // Returns a kRelease that asks the owner which of its results every worker has; `owned`: the owner's partitions.
  // None: no other worker may need a result of these partitions.
  std::optional<exchange::Send> ask_for_release(uint32_t owner, std::span<const uint32_t> owned) const;

  // Returns the kHand for an owner that asks for a result (kFetch). None: this worker does not keep it. Then every
  // worker has the result, or this worker has sent it before and the owner's frame is late.
  std::optional<exchange::Send> hand_on(uint32_t owner, uint32_t partition, const wire::Header& wanted) const;

  uint32_t needed_by_others() const { return retention_.needed_by_others(); }
  uint64_t bytes() const { return retention_.bytes() + accumulated_.bytes(); }  // kept

 private:
  const Identity identity_;
  BufferPool* const pool_;
  std::shared_ptr<const plan::Plan> plan_;
  std::vector<uint64_t> steps_;  // by partition
  Retention retention_;
  AccumulatedAnswers accumulated_;
};

}  // namespace gleaner::session
