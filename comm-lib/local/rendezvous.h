// Functions by which the local ranks of a worker find each other and prove that they belong together: by an abstract
// Unix socket of the network namespace, by the user that they run as, and by proofs that each side knows the job's
// secret. The socket's name and the proofs are HMAC-SHA256 with that secret as key, and reveal nothing about it. The
// secret is new for each start of a job. No function blocks.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/message.h"
#include "common/base/descriptor.h"

namespace gleaner::local {

// Returns the name of the leader's socket, without the leading zero byte of abstract names.
std::string socket_name(const Options& options);

// Listens at `name`. AlreadyExists: another process is this worker's leader.
absl::StatusOr<Descriptor> listen_at(const std::string& name);
// Connects to `name`. Returns nullopt if no process listens there yet.
absl::StatusOr<std::optional<Descriptor>> connect_to(const std::string& name);
// Accepts a connection. Returns nullopt if no connection waits.
absl::StatusOr<std::optional<Descriptor>> accept_from(const Descriptor& listener);

// Returns the process at the other end. PermissionDenied: the process belongs to another user.
absl::StatusOr<pid_t> peer_of(int socket);
// Returns a descriptor that becomes readable when the process ends, or an invalid one if the kernel has no pidfds. A
// socket does not show the end of a process whose children hold the same socket.
Descriptor watch_process(pid_t pid);

// Returns the first message of a local rank above 0.
HelloPayload hello_of(const Options& options);
// Checks a HELLO at the leader. PermissionDenied: the proof is wrong. InvalidArgument: the proof is correct, but the
// rank was started with another local size or an impossible local rank.
absl::Status check_hello(const HelloPayload& hello, const Options& leader);

// Returns the leader's proof for local rank `rank`.
Digest welcome_of(const Options& options, uint32_t rank);
// Checks the leader's proof. PermissionDenied: the proof is wrong.
absl::Status check_welcome(const Digest& welcome, const Options& options);

}  // namespace gleaner::local
