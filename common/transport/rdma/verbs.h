// What libibverbs and librdmacm give out, each with an owner who gives it back.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::transport::rdma {

inline constexpr int kResolveMilliseconds = 2000;  // for each of the two steps of finding the way to a peer

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

// Whom an id's events concern: its context is one of these, or null.
class IdUser {
 public:
  virtual ~IdUser() = default;
  virtual void on_event(const rdma_cm_event& event) = 0;
};

// To be asked before any memory is registered. From here on a process may fork, as PyTorch's DataLoader does, while
// adapters have its memory: what it writes afterwards is what they read. Kernels from 5.12 on see to that themselves;
// on others a child does not have the pages that were registered.
absl::Status prepare_for_fork();

// `what` and errno's text. ResourceExhausted where the system has no more of it: memory that may be pinned, or an
// object of the adapter.
absl::Status verbs_error(int error, absl::string_view what);

// In words, what a completion says that went wrong.
absl::Status completion_error(const ibv_wc& completion);

// What the connection manager asks or answers with. `data` stays until it has.
rdma_conn_param parameters_of(uint32_t pair_number, const void* data, size_t bytes);
// Before it asks.
void set_ack_timeout(rdma_cm_id* id);

// A reliable connection's, of one scatter entry per request.
absl::StatusOr<QueuePair> make_queue_pair(ibv_pd* domain, ibv_cq* queue, uint32_t sends, uint32_t receives);
// Takes what the connection manager has found out about the way to the peer. The peer can't write here yet.
absl::Status move_to(rdma_cm_id* id, ibv_qp* pair, ibv_qp_state state);
// Now it can, where it has a key to.
absl::Status let_write(ibv_qp* pair);

// A poll() of its descriptor shall never wait.
absl::Status set_nonblocking(int descriptor);

}  // namespace gleaner::transport::rdma
