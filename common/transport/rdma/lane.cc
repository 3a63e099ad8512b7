#include "common/transport/rdma/lane.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {

Lane::Lane(OnEvent on_event, uint16_t number, int port, uint64_t bits_per_second)
    : on_event_(std::move(on_event)), number_(number), port_(port), bits_per_second_(bits_per_second) {}

void Lane::set_id(CmId id) {
  id_ = std::move(id);
  id_->context = static_cast<IdUser*>(this);
}

void Lane::on_event(const rdma_cm_event& event) {
  const OnEvent handle = on_event_;  // a copy, which outlives the lane if the call destroys it
  if (handle) handle(*this, event);
}

std::string Lane::name() const {
  return domain_ == nullptr ? "a device" : ibv_get_device_name(domain_->device()->device);
}

absl::Status Lane::open(std::shared_ptr<Domain> domain, ibv_comp_channel* channel, void* context) {
  domain_ = std::move(domain);
  queue_.reset(ibv_create_cq(domain_->device(), 2 * kMaxOffers + 1, context, channel, 0));
  if (queue_ == nullptr) return verbs_error(errno, "can't make a completion queue");
  GLN_ASSIGN_OR_RETURN(pair_, make_queue_pair(domain_->get(), queue_.get(), kMaxOffers, kMaxOffers));
  return absl::OkStatus();
}

absl::Status Lane::make_ready() {
  GLN_RETURN_IF_ERROR(move_to(id_.get(), pair_.get(), IBV_QPS_INIT));
  GLN_RETURN_IF_ERROR(refill(kMaxOffers));
  GLN_RETURN_IF_ERROR(move_to(id_.get(), pair_.get(), IBV_QPS_RTR));
  GLN_RETURN_IF_ERROR(move_to(id_.get(), pair_.get(), IBV_QPS_RTS));
  GLN_RETURN_IF_ERROR(let_write(pair_.get()));
  is_ready_ = true;
  return arm();
}

absl::Status Lane::refill(size_t count) {
  std::array<ibv_recv_wr, kMaxOffers> requests{};
  for (size_t i = 1; i < count; ++i) requests[i - 1].next = &requests[i];
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(pair_.get(), requests.data(), &bad);
  return error == 0 ? absl::OkStatus() : verbs_error(error, "the adapter accepts no more receive requests");
}

absl::Status Lane::write(uint16_t offer, uint32_t immediate, ibv_sge piece, uint64_t address, uint32_t key) {
  ibv_send_wr request{};
  request.wr_id = offer;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = IBV_SEND_SIGNALED;
  request.imm_data = htonl(immediate);
  request.wr.rdma.remote_addr = address;
  request.wr.rdma.rkey = key;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(pair_.get(), &request, &bad);
  if (error != 0) return verbs_error(error, absl::StrCat(name(), " accepts no more send requests"));
  ++writes_;
  return absl::OkStatus();
}

int Lane::poll() { return ibv_poll_cq(queue_.get(), kCompletionsAtOnce, taken_.data()); }

bool Lane::peek() {
  if (taken_count_ == 0 && pair_ != nullptr) taken_count_ = std::max(0, poll());
  return taken_count_ > 0;
}

absl::StatusOr<std::span<const ibv_wc>> Lane::take() {
  const int count = taken_count_ > 0 ? std::exchange(taken_count_, 0) : poll();
  if (count < 0) return absl::UnavailableError("the adapter's completion queue can't be read");
  size_t received = 0;
  for (const ibv_wc& one : std::span(taken_).first(static_cast<size_t>(count))) {
    unreachable_ = one.status == IBV_WC_RETRY_EXC_ERR;
    if (one.status != IBV_WC_SUCCESS) return completion_error(one);
    if (one.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      ++received;
    } else if (one.opcode == IBV_WC_RECV) {
      return absl::InvalidArgumentError("the peer sent a packet over a lane, which carries payloads only");
    } else {
      --writes_;
    }
  }
  if (received > 0) GLN_RETURN_IF_ERROR(refill(received));
  return std::span<const ibv_wc>(taken_).first(static_cast<size_t>(count));
}

absl::Status Lane::arm() {
  if (!is_ready_ || pair_ == nullptr) return absl::OkStatus();
  const int error = ibv_req_notify_cq(queue_.get(), 0);
  return error == 0 ? absl::OkStatus() : verbs_error(error, "can't ask for events of a completion queue");
}

void Lane::end() {
  if (is_ready_ && pair_ != nullptr && id_ != nullptr) rdma_disconnect(id_.get());
  pair_.reset();
}

}  // namespace gleaner::transport::rdma
