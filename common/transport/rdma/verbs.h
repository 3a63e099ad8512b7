// Owning handles for the objects of libibverbs and librdmacm, and wrappers of their calls.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::transport::rdma {

inline constexpr int kResolveMilliseconds = 2000;  // for each of two steps: resolving a peer's address, and its route

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

// Handles the events of a connection manager's id. The context of each id is an IdUser or null.
class IdUser {
 public:
  virtual ~IdUser() = default;
  virtual void on_event(const rdma_cm_event& event) = 0;
};

// Prepares for a fork, such as that of PyTorch's DataLoader, while memory is registered. Must be called before any
// memory is registered. After a fork the adapters continue to read the memory of this process. Kernels from 5.12 on
// ensure that themselves; on older kernels the child process does not get the registered pages.
absl::Status prepare_for_fork();

// Returns an error with `action` and errno's text. The code is ResourceExhausted if the system has run out of memory
// that may be pinned or of an adapter's objects, else Unavailable.
absl::Status verbs_error(int error, absl::string_view action);

// Returns the error that a failed completion reports.
absl::Status completion_error(const ibv_wc& completion);

// Returns the parameters of rdma_connect() or rdma_accept(). `data`, the private data, has to outlive that call.
rdma_conn_param parameters_of(uint32_t pair_number, const void* data, size_t bytes);
// Sets the timeout of acknowledgements. Has to be called before rdma_connect().
void set_ack_timeout(rdma_cm_id* id);

// Makes the queue pair of a reliable connection, with one scatter-gather entry per work request.
absl::StatusOr<QueuePair> make_queue_pair(ibv_pd* domain, ibv_cq* queue, uint32_t sends, uint32_t receives);
// Moves the queue pair to `state`, with the connection manager's data about the path to the peer. The peer can't write
// to memory yet.
absl::Status move_to(rdma_cm_id* id, ibv_qp* pair, ibv_qp_state state);
// Lets the peer write to registered memory whose remote key it has.
absl::Status let_write(ibv_qp* pair);

// Makes the descriptor non-blocking, so that poll() never blocks when it reads events from it.
absl::Status set_nonblocking(int descriptor);

}  // namespace gleaner::transport::rdma
