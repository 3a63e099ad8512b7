#include "common/netsim/processors.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "common/base/status_macros.h"

namespace gleaner::netsim {

Processors::Processors(const topology::Topology& topology, const std::vector<uint32_t>& host_of) {
  for (const uint32_t host : host_of)
    processors_.emplace_back().overhead_seconds = topology.hosts()[host].overhead_seconds;
}

absl::Status Processors::give(uint32_t index, Done work, double now, CarryOut carry_out) {
  Processor& processor = processors_[index];
  if (!(processor.overhead_seconds > 0)) return carry_out(work);
  processor.has_call |= work.work == Work::kCall;
  if (work.work == Work::kReceive) {
    processor.arrived.push_back(work.id);
  } else {
    processor.others.push_back(work);
  }
  if (!processor.is_busy) begin(index, now);
  return absl::OkStatus();
}

absl::Status Processors::advance(double now, CarryOut carry_out) {
  while (const std::optional<Done> done = take(now)) GLN_RETURN_IF_ERROR(carry_out(*done));
  return absl::OkStatus();
}

void Processors::begin(uint32_t index, double now) {
  Processor& processor = processors_[index];
  processor.is_busy = !processor.arrived.empty() || !processor.others.empty();
  if (!processor.is_busy) return;
  if (!processor.arrived.empty()) {
    processor.current = {Work::kReceive, processor.arrived.front()};
    processor.arrived.pop_front();
  } else {
    processor.current = processor.others.front();
    processor.others.pop_front();
  }
  ends_.push_back({now + processor.overhead_seconds, index});
  std::ranges::push_heap(ends_, std::greater<>());
}

double Processors::end_seconds() const {
  double end = 0;
  for (const Processor& processor : processors_) {
    if (processor.has_call) end = std::max(end, processor.free + processor.overhead_seconds);
  }
  return end;
}

double Processors::next_seconds() const {
  return ends_.empty() ? std::numeric_limits<double>::infinity() : ends_.front().seconds;
}

std::optional<Processors::Done> Processors::take(double now) {
  if (ends_.empty() || ends_.front().seconds > now) return std::nullopt;
  std::ranges::pop_heap(ends_, std::greater<>());
  const End end = ends_.back();
  ends_.pop_back();
  const Done done = processors_[end.processor].current;
  processors_[end.processor].free = end.seconds;
  begin(end.processor, end.seconds);
  return done;
}

}  // namespace gleaner::netsim
