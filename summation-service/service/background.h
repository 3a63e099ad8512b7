// Functions for the CPU scheduling of threads that should use only the time that other processes leave. They need no
// privileges. A kernel ignores requests that it does not support.
#pragma once

namespace gleaner::service {

// Requests the shortest time slice that the kernel offers, for this thread and threads that it starts later. Other
// threads that become runnable then wait less. In a cgroup of least weight, the thread gets its small part of CPU time
// in frequent short slices instead of rare long ones. Needs Linux 6.12 or later.
void take_short_turns();

// Calls take_short_turns() and selects SCHED_IDLE. Such a thread never preempts a thread with another policy when it
// wakes, it has almost no weight in its cgroup, and the scheduler treats a processor that runs only such threads as
// idle. There is no function that undoes this.
void run_in_background();

}  // namespace gleaner::service
