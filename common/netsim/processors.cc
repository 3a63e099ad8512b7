#include "common/netsim/processors.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace gleaner::netsim {

Processors::Processors(const topology::Topology& topology, const std::vector<uint32_t>& host_of) {
  for (const uint32_t host : host_of)
    processors_.emplace_back().overhead_seconds = topology.hosts()[host].overhead_seconds;
}

void Processors::add(uint32_t index, Done work, double now) {
  Processor& processor = processors_[index];
  (work.work == Work::kReceive ? processor.arrived : processor.to_send).push_back(work.message);
  if (!processor.is_busy) begin(index, now);
}

void Processors::begin(uint32_t index, double now) {
  Processor& processor = processors_[index];
  const bool receives = !processor.arrived.empty();
  std::deque<uint64_t>& waiting = receives ? processor.arrived : processor.to_send;
  processor.is_busy = !waiting.empty();
  if (waiting.empty()) return;
  processor.current = {receives ? Work::kReceive : Work::kSend, waiting.front()};
  waiting.pop_front();
  ends_.push_back({now + processor.overhead_seconds, index});
  std::ranges::push_heap(ends_, std::greater<>());
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
  begin(end.processor, end.seconds);
  return done;
}

}  // namespace gleaner::netsim
