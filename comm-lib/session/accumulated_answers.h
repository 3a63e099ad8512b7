// AccumulatedAnswers keeps the last answer to a push of each partition that accumulates. If the owner is lost, the next
// owner goes on from the highest version that a worker has. So the answer is kept until the next one arrives.
//
// An answer is a running sum, followed by the number of contributions of each worker in it. Its *version* is the sum of
// these numbers. Pure; belongs to one thread. It keeps the buffer in which an answer arrived, so it copies nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

// Partitions are named by their indexes in the plan.
class AccumulatedAnswers {
 public:
  void resize(size_t partitions) { kept_.resize(partitions); }

  // Checks that an answer contains all contributions of this worker, each once, and more contributions than the last
  // answer. InvalidArgument otherwise.
  absl::Status check(const plan::Plan& plan, uint32_t partition, uint32_t worker, const wire::Header& header,
                     const Buffer& answer) const;
  // Keeps an answer in place of the last one.
  void keep(const plan::Plan& plan, uint32_t partition, Buffer answer);

  uint64_t version(uint32_t partition) const { return kept_[partition].version; }     // of the last answer; 0: none
  const Buffer& answer(uint32_t partition) const { return kept_[partition].answer; }  // empty: none
  uint64_t bytes() const { return bytes_; }                                           // of all answers

 private:
  struct Kept {
    Buffer answer;
    uint64_t version = 0;
  };
  std::vector<Kept> kept_;  // by partition; unused for partitions that don't accumulate
  uint64_t bytes_ = 0;
};

}  // namespace gleaner::session
