// Report is a rank's report to the coordinator. These structs are plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace gleaner::control {

// The oldest unfinished push_pull of a rank.
struct Waiting {
  std::string tensor;
  uint64_t step = 0;       // number of the tensor's earlier push_pulls; 0 also before a plan has the tensor
  absl::Duration elapsed;  // since the rank asked for it
  // Members from which the rank awaits frames, by index in the plan; the one that has been silent for longest comes
  // first.
  std::vector<uint32_t> members;
  friend bool operator==(const Waiting&, const Waiting&) = default;
};

// The figures of a rank's steps in one epoch. A step that spans a change of plan counts for neither plan, so these
// figures can't look better than the bound allows. A step that reduces other bytes than the steps around it may be left
// out (comm-lib/runtime/measured_steps.h).
struct Measured {
  uint32_t epoch = 0;
  uint64_t steps = 0;
  uint64_t bytes = 0;                // gradient bytes reduced by push_pulls that began and ended in these steps
  uint64_t open_bytes = 0;           // in flight at the end of the last step; later figures must not count them again
  double communication_seconds = 0;  // time with at least one push_pull in flight
  uint64_t step_bytes = 0;           // gradient bytes of the push_pulls that began in these steps; 0: not known
  uint64_t last_step = 0;            // number of the last of these steps, since the start of the rank; 0: not known
  int64_t saved_bytes = 0;           // by which compression and sparse communication lessen step_bytes
  friend bool operator==(const Measured&, const Measured&) = default;
};

// The time that results from a CPU summer are late (comm-lib/session/owner_waits.h).
struct Late {
  uint32_t member = 0;  // index in the plan
  double seconds = 0;
  friend bool operator==(const Late&, const Late&) = default;
};

// The packs of gradients that a rank has chosen by predicted times (docs/gradientflow.md#the-choice-of-auto).
struct Packs {
  double fusion_bytes = 0;  // gradients of at most this size are in packs of more; infinity: all are; 0: none is
  double seconds = 0;       // predicted time from the first gradient of a step to the end of their exchange
  double seconds_without_packs = 0;  // the same with each gradient on its own
  friend bool operator==(const Packs&, const Packs&) = default;
};

// The figures of one rank since the start of the job.
struct Report {
  uint64_t steps = 0;
  uint64_t bytes = 0;                // gradient bytes reduced, not wire bytes
  double communication_seconds = 0;  // time with at least one push_pull in flight
  std::vector<Measured> measured;    // for the latest epochs with steps, in order
  double round_trip_seconds = 0;     // least time to the farthest summer and back; 0: not measured
  double overhead_seconds = 0;       // of this host's processor to send a message, and to receive one; 0: not measured
  // Rate of this worker's link: the sum of the rates at which it lately sent to each other worker (Luo §4.2.3),
  // each while data was under way to that worker; 0: not known.
  double link_bits_per_second = 0;
  uint32_t epoch = 0;               // of the plan in force for `late`; 0: this rank does not measure it
  std::vector<Late> late;           // in this epoch; summers that were never late may be missing
  double workers_late_seconds = 0;  // time that the workers' summers were late in this epoch
  std::optional<Waiting> waiting;   // set if a push_pull takes long
  uint64_t step_bytes = 0;          // gradient bytes of a recent step; 0: not known
  std::optional<Packs> packs;       // none: this rank has chosen no packs
  int64_t saved_bytes = 0;          // of the same step as step_bytes, as in Measured
  friend bool operator==(const Report&, const Report&) = default;
};

}  // namespace gleaner::control
