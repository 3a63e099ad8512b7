// How the kernel schedules threads that want only what others leave. Anybody may ask for this; what a kernel does not
// know it leaves as it is.
#pragma once

namespace gleaner::service {

// This thread, and those that it starts from now on, run for as short a time at once as the kernel allows: who comes
// meanwhile does not wait for long, and of the little time that a cgroup of least weight has it gets a bit often, and
// not much now and then (Linux 6.12).
void take_short_turns();

// The same, and whatever is not in the background goes first: such a thread takes nobody's turn when it wakes, has next
// to no weight in its cgroup, and a processor that runs nothing else counts as idle. There is no way back.
void run_in_background();

}  // namespace gleaner::service
