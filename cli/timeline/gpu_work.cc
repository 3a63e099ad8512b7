#include "cli/timeline/gpu_work.h"

#include <algorithm>
#include <optional>

namespace gleaner::cli {
namespace {

using trace::Kind;

// Returns the kind of the begin of the work that ends with an event of `kind`; nothing: no work ends.
std::optional<Kind> begin_of(Kind kind) {
  if (kind == Kind::kCopyOutEnded) return Kind::kCopyOutBegun;
  if (kind == Kind::kCopyInEnded) return Kind::kCopyInBegun;
  if (kind == Kind::kReduceEnded) return Kind::kReduceBegun;
  if (kind == Kind::kBroadcastEnded) return Kind::kBroadcastBegun;
  return std::nullopt;
}

bool is_of_result(Kind begin) { return begin == Kind::kCopyInBegun || begin == Kind::kBroadcastBegun; }

}  // namespace

void GpuWork::note(const trace::Event& event, Time time) {
  if (event.kind == Kind::kProduced) {
    if (produced_ == kNever) produced_ = time;  // the other ones are of later pieces
    return;
  }
  const std::optional<Kind> begin = begin_of(event.kind);
  if (!begin.has_value()) {
    spans_.push_back({event.kind, event.partition, event.bytes, time, kNever});
    return;
  }
  if (is_of_result(*begin)) result_there_ = std::max(result_there_, time);
  // Most work ends in the order of its begin, so its span is among the last ones.
  const auto is_open = [&](const GpuSpan& span) {
    return span.begin_kind == *begin && span.partition == event.partition && span.ended == kNever;
  };
  const auto span = std::find_if(spans_.rbegin(), spans_.rend(), is_open);
  if (span != spans_.rend()) span->ended = time;
}

const GpuSpan* GpuWork::last_before(Time time, bool of_result, uint32_t last) const {
  const GpuSpan* found = nullptr;
  for (const GpuSpan& span : spans_) {
    if (span.ended == kNever || span.ended > time || span.partition > last) continue;
    if (is_of_result(span.begin_kind) != of_result) continue;
    if (found == nullptr || span.ended > found->ended) found = &span;
  }
  return found;
}

}  // namespace gleaner::cli
