// What a user says of transports, and the transport that follows from it: the best of all that this build has.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/transport/any/transport.h"

namespace gleaner::transport {

struct Settings {
  Preferences preferences;
  std::string shm_directory = "/dev/shm";  // where members of this machine find each other
  std::string rdma_device;                 // "mlx5_0", "mlx5_0:1" (port), "mlx5_0:1:3" (GID), or a list; empty: any
  std::string rdma_near;                   // NUMA node or PCI address of a GPU that has what is sent; empty: the cores
  absl::Duration rdma_poll;                // after the last that came, look without sleeping for so long
};

// As any::Transport::create(); `jobs` outlives it, too.
absl::StatusOr<std::unique_ptr<any::Transport>> make_transport(const Env& env, const Settings& settings,
                                                               Handler* handler, const wire::JobSecrets* jobs);

}  // namespace gleaner::transport
