// Settings are the user's settings for transports. make_transport() makes the transport from them, which chooses for
// each peer among all transports of this build.
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
  std::string shm_directory = "/dev/shm";  // directory in which members on this machine find each other's sockets
  std::string rdma_device;   // "mlx5_0", "mlx5_0:1" (port), "mlx5_0:1:3" (GID), or a list of these; empty: any device
  std::string rdma_near;     // NUMA node, or PCI address of a GPU, whose memory is sent; empty: by the process's cores
  absl::Duration rdma_poll;  // rdma::Options::busy_poll
};

// Makes the transport, as any::Transport::create() does. `jobs`, too, must outlive it.
absl::StatusOr<std::unique_ptr<any::Transport>> make_transport(const Env& env, const Settings& settings,
                                                               Handler* handler, const wire::JobSecrets* jobs);

}  // namespace gleaner::transport
