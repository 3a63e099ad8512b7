// Starts threads and names them, so that people can find them in top and in a debugger (15 characters at most).
#pragma once

#include <functional>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gleaner {

// Names the calling thread.
void name_this_thread(const char* name);

// Starts a thread that runs `body`. ResourceExhausted: the system starts no more threads; the message names the limit
// that is reached (limits.h).
absl::StatusOr<std::thread> start_thread(const char* name, std::function<void()> body);

// Checks that this process can start `count` more threads, by starting and ending them. A library that can't report the
// lack of a thread, or waits for ever for a thread that it could not start, is asked to start them only after that.
// ResourceExhausted: as start_thread(). `user` begins the message: "the coordinator's gRPC server".
absl::Status check_threads(int count, absl::string_view user);

}  // namespace gleaner
