// The Unix sockets by which two processes of one host find each other; none of it waits. Errors say the path, and what
// to do.
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

// Listens at a new path in the directory, open to every user: who connects has to know a job's secret. Removes the
// paths that processes which are gone have left there. AlreadyExists: it is a path where somebody listens.
absl::StatusOr<Listening> listen_in(const std::string& directory, const Env& env);
// Unavailable: nobody listens at `path` now.
absl::StatusOr<Descriptor> connect_to(const std::string& path);
// Who it is, for people.
std::string peer_of(const Descriptor& socket);

}  // namespace gleaner::transport::shm
