// What a process that talks to the API server sets up before anything else.
#pragma once

#include "absl/time/time.h"

namespace gleaner::kube {

// To be called first in main(), before there is another thread:
// - SSL_CERT_FILE and SSL_CERT_DIR are pointed at nothing. cpprestsdk loads the system's CAs for every connection, at
//   20 ms and 1 MB each, and then trusts them beside the cluster's own CA. Credentials name the CA to be trusted.
// - cpprestsdk gets 4 threads instead of 40.
void prepare_process();

// Runs what cpprestsdk's threads have begun and handed to each other, to its end; for `timeout` at most. What is in
// their queue when a process ends is freed by nobody. Not to be called by one of them.
void finish_started_work(absl::Duration timeout);

}  // namespace gleaner::kube
