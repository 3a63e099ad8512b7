// The pauses before the operator creates pods again. Every loop that creates pods takes its pauses from here: they
// double with each try that has failed, up to a limit, and jobs that failed at the same time try again at different
// times. Pure.
//
// Each loop also has an end. Restarts for a job's own failures are counted by backoffLimit; all others end with
// activeDeadlineSeconds.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::reconcile {

struct Pauses {
  absl::Duration first;    // after the first try that failed
  absl::Duration longest;  // no pause is longer, before the jitter
};

// Between attempts of a job.
inline constexpr Pauses kRestartPauses{absl::Seconds(1), absl::Minutes(5)};
// After a gang that did not start in time, so that other jobs can take the machines that it released, and after pods
// that a kubelet refused before they ran.
inline constexpr Pauses kReleasePauses{absl::Seconds(30), absl::Minutes(5)};
// After objects that the API server refused.
inline constexpr Pauses kRefusalPauses{absl::Seconds(1), absl::Minutes(1)};
// After summers that the API server refused: the job runs without them.
inline constexpr Pauses kSummerPauses{absl::Seconds(10), absl::Minutes(5)};

// No pause is longer, jitter and whole seconds included.
inline constexpr absl::Duration kLongestPause = absl::Minutes(7);

// An attempt whose workers all ran for this time ends a series of tries.
inline constexpr absl::Duration kGoodRun = absl::Minutes(10);

// Returns the pause after `failed` tries in a row (at least 1), times a factor from 0.75 to 1.25, in whole
// milliseconds. The factor follows from `failed` and from `who`, the name of what is tried. The factor is the same at
// every operator.
absl::Duration pause_after(const Pauses& pauses, uint32_t failed, absl::string_view who);

}  // namespace gleaner::reconcile
