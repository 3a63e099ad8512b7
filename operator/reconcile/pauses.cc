#include "operator/reconcile/pauses.h"

#include <algorithm>

#include "common/base/mix.h"

namespace gleaner::reconcile {
namespace {

constexpr uint32_t kMaxDoublings = 20;

// Returns a number from 0 to 1.
double fraction(uint32_t failed, absl::string_view who) {
  uint64_t hash = splitmix64(failed);
  for (const char c : who) hash = splitmix64(hash ^ static_cast<uint8_t>(c));
  return static_cast<double>(hash >> 11) / static_cast<double>(uint64_t{1} << 53);
}

}  // namespace

absl::Duration pause_after(const Pauses& pauses, uint32_t failed, absl::string_view who) {
  const uint32_t doublings = std::min(failed > 0 ? failed - 1 : 0, kMaxDoublings);
  const absl::Duration pause = std::min(pauses.longest, pauses.first * (uint64_t{1} << doublings));
  return absl::Trunc(pause * (0.75 + fraction(failed, who) / 2), absl::Milliseconds(1));
}

}  // namespace gleaner::reconcile
