// Ends this process at a set time, whatever its threads then do or wait for. It needs no thread: a timer of the kernel
// sends SIGALRM, and the signal's handler ends the process.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner {

// Time from a signal until the process of a summer or of a coordinator ends in any case (EndSignals::start()).
inline constexpr absl::Duration kSignalTimeout = absl::Milliseconds(4500);
// Time in which a process must have shut down after its job. A gRPC that lacks threads never does.
inline constexpr absl::Duration kShutdownTimeout = absl::Seconds(3);

// Ends this process with `status` once `time` has passed, unless the process has ended before. No destructor runs.
// First writes `message`, unless it is empty, and a line end to standard error, if that does not block. A later call
// replaces the time, the status and the message; a call during another one has no effect.
//
// Thread safe. A signal handler may call this.
void exit_after(absl::Duration time, int status, absl::string_view message);

}  // namespace gleaner
