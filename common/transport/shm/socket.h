// Functions for the Unix sockets by which two processes of one host find each other. No function blocks. Error messages
// name the path and suggest a remedy.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/descriptor.h"
#include "common/base/env.h"

namespace gleaner::transport::shm {

struct Listening {
  Descriptor socket;
  std::string path;
};

// Listens at a new path in the directory. Every user may connect to the path, since a peer has to prove that it knows a
// job's secret. Removes paths of dead processes in the directory that are older than ten seconds. AlreadyExists:
// `directory` is itself a socket.
absl::StatusOr<Listening> listen_in(const std::string& directory, const Env& env);
// Connects to the socket at `path`. Unavailable: it can't connect, for example because no process listens there.
absl::StatusOr<Descriptor> connect_to(const std::string& path);
// Returns a description of the process at the other end, for messages.
std::string peer_of(const Descriptor& socket);

}  // namespace gleaner::transport::shm
