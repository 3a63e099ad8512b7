// The phase of a job, as its coordinator reports it.
#pragma once

namespace gleaner::coordinator {

enum class Phase {
  kGathering,    // waits for members; no plan is in force
  kReattaching,  // takes up a job that began under another coordinator (reattachment.h)
  kRunning,      // a plan is in force
  kEnded,
};

}  // namespace gleaner::coordinator
