// How the local ranks of a worker find each other and show that they belong together: an abstract Unix socket of the
// network namespace, one user, and proofs that each side knows the job's secret. The name and the proofs are
// HMAC-SHA256(secret, label and who) and tell nothing about the secret, which itself is new with every start of a job.
// Nothing here blocks.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/message.h"
#include "common/base/descriptor.h"

namespace gleaner::local {

// Without the leading zero byte.
std::string socket_name(const Options& options);

// AlreadyExists: another process leads this worker.
absl::StatusOr<Descriptor> listen_at(const std::string& name);
// Nothing: nobody listens there yet.
absl::StatusOr<std::optional<Descriptor>> connect_to(const std::string& name);
// Nothing: no more for now.
absl::StatusOr<std::optional<Descriptor>> accept_from(const Descriptor& listener);

// The process at the other end. PermissionDenied: it belongs to another user.
absl::StatusOr<pid_t> peer_of(int socket);
// Readable when the process has ended, invalid if the system has no such thing. A socket alone may outlive its process:
// in the children that it forked.
Descriptor watch_process(pid_t pid);

// What another local rank says first, and the leader's check of it. PermissionDenied: no valid proof; InvalidArgument:
// it does know the secret, but was started otherwise.
HelloPayload hello_of(const Options& options);
absl::Status check_hello(const HelloPayload& hello, const Options& leader);

// The leader's answer to local rank `rank`.
Digest welcome_of(const Options& options, uint32_t rank);
// PermissionDenied: not what welcome_of() gives.
absl::Status check_welcome(const Digest& welcome, const Options& options);

}  // namespace gleaner::local
