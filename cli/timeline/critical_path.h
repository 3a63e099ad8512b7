// Where a step's time went: the chain of what had to happen for its last request to be done, walked back from there.
// Pure.
//
// Every moment of the step is on the chain once: the stages of a step add up to its length. From the last result back:
// on the wire from its owner; the sum; the last part that came for it, on the wire; that part in its worker's queue;
// then, as far as that worker was later ready than the median one, waiting for it; then the median worker's own way to
// being ready, and its compute. Where a rank had nothing under way before, the walk goes on with what it had waited for
// then.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

enum class Stage {
  kCompute,  // the program had not asked for it yet
  kLocal,    // on its way through the worker: mailbox, sums over local ranks, results handed back
  kQueue,    // ready, and not yet its turn on the connection
  kWire,     // handed to a connection, and not yet whole at the other end
  kSum,
  kWait,     // for the slowest worker
  kUnknown,  // some member's events are missing
};
inline constexpr size_t kStages = 7;
absl::string_view name_of(Stage stage);

struct Segment {
  Stage stage = Stage::kUnknown;
  Time begin = 0;
  Time end = 0;
  uint32_t member = 0;                // where it happened; on the wire, from where; of a wait, for whom
  std::optional<uint32_t> to;         // on the wire
  std::optional<Call> call;           // of which tensor
  std::optional<uint32_t> partition;  // and which slice
};

struct StepPath {
  std::vector<Segment> segments;  // in order of time, end to end from the step's begin to its end
  std::array<Time, kStages> spent{};
  struct Slowest {
    uint32_t worker = 0;
    Time waited = 0;
  };
  std::optional<Slowest> slowest;  // who was waited for most; none: nobody

  Time& operator[](Stage stage) { return spent[static_cast<size_t>(stage)]; }
  Time operator[](Stage stage) const { return spent[static_cast<size_t>(stage)]; }
};

// Of a step that is complete.
StepPath walk(const Timeline& timeline, const Step& step);

}  // namespace gleaner::cli
