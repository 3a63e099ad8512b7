// Functions that set up and shut down cpprestsdk in a process that calls the API server.
#pragma once

#include "absl/time/time.h"

namespace gleaner::kube {

// Must be called first in main(), before any other thread is started:
// - It sets SSL_CERT_FILE to an empty file and SSL_CERT_DIR to a missing folder. Otherwise cpprestsdk loads the
//   system's CAs for every connection (20 ms and 1 MB each) and trusts them beside the cluster's own CA. Credentials
//   name the CA to trust.
// - It gives cpprestsdk 4 threads instead of 40.
void prepare_process();

// Waits until cpprestsdk's threads have finished the tasks that run or are queued now, and then the tasks that those
// have queued. Waits at most `timeout`. Without this call, tasks that are still queued when the process ends are never
// freed. Must not be called on one of cpprestsdk's threads.
void drain_cpprest_threads(absl::Duration timeout);

}  // namespace gleaner::kube
