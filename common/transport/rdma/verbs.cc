#include "common/transport/rdma/verbs.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace gleaner::transport::rdma {
namespace {

// An adapter waits for an acknowledgement for 4 us times 2^kAckTimeout (0.27 s) or longer, and then sends again, up to
// kRetries times. After these seconds it gives up the peer. With 7 retries, the maximum, Soft-RoCE never gives up.
constexpr uint8_t kAckTimeout = 16;
constexpr uint8_t kRetries = 6;

absl::Status modify(ibv_qp* pair, ibv_qp_attr* attributes, int mask, const char* to) {
  const int error = ibv_modify_qp(pair, attributes, mask);
  if (error == 0) return absl::OkStatus();
  return verbs_error(error, absl::StrCat("can't make a queue pair ", to));
}

}  // namespace

absl::Status prepare_for_fork() {
  static const int error = ibv_fork_init();
  return error == 0 ? absl::OkStatus() : verbs_error(error, "can't exclude registered memory from forked processes");
}

absl::Status verbs_error(int error, absl::string_view action) {
  const std::string message = absl::StrCat(action, ": ", std::strerror(error));
  if (error == ENOMEM || error == ENOSPC || error == EMFILE || error == EAGAIN) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::UnavailableError(message);
}

absl::Status set_nonblocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0 || fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::ErrnoToStatus(errno, "can't make a descriptor non-blocking");
  }
  return absl::OkStatus();
}

absl::Status completion_error(const ibv_wc& completion) {
  if (completion.status == IBV_WC_WR_FLUSH_ERR) return absl::UnavailableError("its queue pair was stopped");
  return absl::UnavailableError(ibv_wc_status_str(completion.status));
}

rdma_conn_param parameters_of(uint32_t pair_number, const void* data, size_t bytes) {
  rdma_conn_param parameters{};
  parameters.private_data = data;
  parameters.private_data_len = static_cast<uint8_t>(bytes);
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = 1;  // receiver-not-ready can't happen: slot_credits.h
  parameters.qp_num = pair_number;
  return parameters;
}

void set_ack_timeout(rdma_cm_id* id) {
  uint8_t timeout = kAckTimeout;
  rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
}

absl::StatusOr<QueuePair> make_queue_pair(ibv_pd* domain, ibv_cq* queue, uint32_t sends, uint32_t receives) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {.max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1};
  QueuePair pair(ibv_create_qp(domain, &wanted));
  if (pair == nullptr) return verbs_error(errno, "can't make a queue pair");
  return pair;
}

absl::Status move_to(rdma_cm_id* id, ibv_qp* pair, ibv_qp_state state) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return verbs_error(errno, "can't get the path to the peer");
  attributes.qp_access_flags = 0;  // the connection manager would let the peer write at once
  const char* const to = state == IBV_QPS_INIT  ? "initialized"
                         : state == IBV_QPS_RTR ? "ready to receive"
                                                : "ready to send";
  return modify(pair, &attributes, mask, to);
}

absl::Status let_write(ibv_qp* pair) {
  ibv_qp_attr attributes{};
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return modify(pair, &attributes, IBV_QP_ACCESS_FLAGS, "writable");
}

}  // namespace gleaner::transport::rdma
