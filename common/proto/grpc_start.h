// Starts gRPC in this process.
//
// gRPC does not report that it could not start a thread. It then serves no call, and when its last object is destroyed
// it waits for ever for the thread. So gRPC is started here, with a check, before the first object of gRPC is made, and
// is never shut down: its threads, which are idle without an object, live as long as the process.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gleaner::proto {

// The most threads that gRPC starts after start_grpc(): for a channel, and for a server.
int channel_threads();
int server_threads();

// Starts gRPC, unless it is started. Checks that its threads have started, and that `more` threads can be started.
// ResourceExhausted: too few can; the message begins with `user` and names the limit. Thread safe.
absl::Status start_grpc(int more, absl::string_view user);

}  // namespace gleaner::proto
