// What libibverbs and librdmacm give out, each with an owner who gives it back.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gleaner::transport::rdma {

template <auto kEnd>
struct Ends {
  template <typename Resource>
  void operator()(Resource* resource) const {
    kEnd(resource);
  }
};

using Device = std::unique_ptr<ibv_context, Ends<ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, Ends<ibv_dealloc_pd>>;
using MemoryRegion = std::unique_ptr<ibv_mr, Ends<ibv_dereg_mr>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, Ends<ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, Ends<ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, Ends<ibv_destroy_qp>>;
using EventChannel = std::unique_ptr<rdma_event_channel, Ends<rdma_destroy_event_channel>>;
using CmId = std::unique_ptr<rdma_cm_id, Ends<rdma_destroy_id>>;

// `what` and errno's text. ResourceExhausted where the system has no more of it: memory that may be pinned, or an
// object of the adapter.
absl::Status verbs_error(int error, absl::string_view what);

// A poll() of its descriptor shall never wait.
absl::Status set_nonblocking(int descriptor);

}  // namespace gleaner::transport::rdma
