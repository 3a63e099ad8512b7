#include "common/transport/factory/factory.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/endpoint.h"
#include "common/transport/rdma/nearness.h"
#include "common/transport/rdma/transport.h"
#include "common/transport/shm/transport.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport {
namespace {

any::Option tcp_option(const Env& env, const wire::JobSecrets* jobs) {
  return {Kind::kTcp,
          [env, jobs](Handler* handler) -> absl::StatusOr<std::unique_ptr<Transport>> {
            return tcp::Transport::create(env, {}, handler, jobs);
          },
          "", ""};
}

any::Option shm_option(const Env& env, const Settings& settings, const wire::JobSecrets* jobs) {
  const std::string& directory = settings.shm_directory;
  absl::StatusOr<std::string> id = directory_id(directory);
  // NotFound would be passed over in silence; a directory that the user named should exist.
  if (absl::IsNotFound(id.status()) && directory != Settings().shm_directory) {
    id = absl::FailedPreconditionError(absl::StrCat(id.status().message(), "; see GLEANER_SHM_DIR"));
  }
  return {Kind::kShm,
          [env, jobs, status = id.status()](Handler* handler) -> absl::StatusOr<std::unique_ptr<Transport>> {
            GLN_RETURN_IF_ERROR(status);
            return shm::Transport::create(env, {}, handler, jobs);
          },
          id.ok() ? *id : "", directory};
}

any::Option rdma_option(const Env& env, const Settings& settings, const wire::JobSecrets* jobs) {
  return {Kind::kRdma,
          [env, jobs, settings](Handler* handler) -> absl::StatusOr<std::unique_ptr<Transport>> {
            rdma::Options options;
            options.busy_poll = settings.rdma_poll;
            GLN_ASSIGN_OR_RETURN(options.devices, rdma::DeviceChoice::parse(settings.rdma_device));
            if (!settings.rdma_near.empty()) {
              absl::StatusOr<int> node = rdma::node_of(settings.rdma_near);
              // NotFound would be passed over in silence; a node or device that the user named should exist.
              if (!node.ok()) {
                return absl::FailedPreconditionError(absl::StrCat("GLEANER_RDMA_NEAR: ", node.status().message()));
              }
              options.near_node = *node;
            }
            auto made = rdma::Transport::create(env, options, handler, jobs);
            // NotFound becomes FailedPrecondition also for a device that the user named.
            if (absl::IsNotFound(made.status()) && !settings.rdma_device.empty()) {
              return absl::FailedPreconditionError(absl::StrCat(made.status().message(), "; see GLEANER_RDMA_DEVICE"));
            }
            return made;
          },
          "", ""};
}

}  // namespace

absl::StatusOr<std::unique_ptr<any::Transport>> make_transport(const Env& env, const Settings& settings,
                                                               Handler* handler, const wire::JobSecrets* jobs) {
  return any::Transport::create(
      env, {shm_option(env, settings, jobs), rdma_option(env, settings, jobs), tcp_option(env, jobs)},
      settings.preferences, handler);
}

}  // namespace gleaner::transport
