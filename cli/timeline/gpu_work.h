// GpuWork has the work of one rank's GPU for a request: copies to and from the host, and copies and sums between the
// GPUs of a machine. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cli/timeline/time.h"
#include "common/trace/event.h"

namespace gleaner::cli {

// A piece of work, from its hand-over to the GPU until the I/O thread saw its end (trace::Kind).
struct GpuSpan {
  trace::Kind begin_kind = trace::Kind::kCopyOutBegun;
  uint32_t partition = 0;  // the first of its partitions
  uint32_t bytes = 0;
  Time begun = kNever;
  Time ended = kNever;
};

class GpuWork {
 public:
  // Notes an event of a GPU, in the order of recording.
  void note(const trace::Event& event, Time time);

  // Returns when the GPU had made the tensor; kNever: no GPU made it, or no event tells.
  Time produced() const { return produced_; }
  // Returns when the last work that brings the result to the GPU ended; kNever: none did.
  Time result_there() const { return result_there_; }
  // Returns the work of which the begin is known, in the order of its begin.
  std::span<const GpuSpan> spans() const { return spans_; }
  // Returns the work that ended last at or before `time`, among the work for the contribution or else the result, whose
  // first partition is at most `last`; null: there is none.
  const GpuSpan* last_before(Time time, bool of_result, uint32_t last = UINT32_MAX) const;

 private:
  Time produced_ = kNever;
  Time result_there_ = kNever;
  std::vector<GpuSpan> spans_;
};

}  // namespace gleaner::cli
