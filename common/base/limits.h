// Names the limits of the system that a process has reached, and what to raise.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gleaner {

// Explains an errno that tells that a resource is missing; empty for any other errno. Example for EMFILE: "this process
// may open 64 files (RLIMIT_NOFILE); raise it with `ulimit -n`". EAGAIN is taken as that of fork() or pthread_create():
// the text names the first of these limits that is reached: RLIMIT_AS, pids.max of a cgroup, RLIMIT_NPROC. To be called
// while the resource is still missing. All paths are below `root`.
std::string explain_limit(int error, const std::string& root = "");

// Returns the error "`what`: `strerror(error)`: `explain_limit(error)`": ResourceExhausted if `error` tells that a
// resource is missing, and otherwise Unavailable.
absl::Status exhausted(absl::string_view what, int error);

// Returns the status of a library, with explain_limit() if its message contains strerror() of a missing resource.
absl::Status with_limits(const absl::Status& status);

// Checks that this process can open `count` more descriptors, by opening and closing them. ResourceExhausted: it can't;
// the message names the limit. `user` begins the message: "the coordinator with 2 workers".
absl::Status check_descriptors(size_t count, absl::string_view user);

// Makes operator new end this process, with status 1 and a message that names the limit and begins with `program`, when
// there is no memory. For programs only, since it is a setting of the whole process.
void report_lack_of_memory(absl::string_view program);

}  // namespace gleaner
