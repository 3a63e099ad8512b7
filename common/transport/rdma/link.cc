#include "common/transport/rdma/link.h"

#include <arpa/inet.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {
namespace {

constexpr int kTurns = 4;  // of kCompletionsAtOnce; then others have theirs
constexpr size_t kPage = 4096;

absl::Status modify(ibv_qp* pair, ibv_qp_attr* attributes, int mask, const char* to) {
  const int error = ibv_modify_qp(pair, attributes, mask);
  if (error == 0) return absl::OkStatus();
  return verbs_error(error, absl::StrCat("can't make a queue pair ", to));
}

absl::Status move_to(rdma_cm_id* id, ibv_qp* pair, ibv_qp_state state, const char* to) {
  ibv_qp_attr attributes{};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return verbs_error(errno, "can't learn the way to the peer");
  attributes.qp_access_flags = 0;  // the connection manager would let the peer write at once
  return modify(pair, &attributes, mask, to);
}

// In words, what a completion says that went wrong.
absl::Status completion_error(const ibv_wc& completion) {
  if (completion.status == IBV_WC_WR_FLUSH_ERR) return absl::UnavailableError("its queue pair was stopped");
  return absl::UnavailableError(ibv_wc_status_str(completion.status));
}

}  // namespace

Link::Link(std::shared_ptr<Domain> domain, Slots slots, Receiver::User* user, bool checksums)
    : domain_(std::move(domain)),
      slots_(std::move(slots)),
      sender_(domain_.get(), &credits_, MutableBytes(slots_.memory.get(), Sender::kMemory), slots_.region->lkey,
              checksums),
      receiver_(user, domain_.get(), &credits_, &sender_,
                MutableBytes(slots_.memory.get() + Sender::kMemory, Receiver::kMemory), slots_.region->lkey) {}

Link::~Link() { end(); }

absl::StatusOr<std::unique_ptr<Link>> Link::create(std::shared_ptr<Domain> domain, ibv_comp_channel* channel,
                                                   Receiver::User* user, bool checksums) {
  constexpr size_t kBytes = Sender::kMemory + Receiver::kMemory;
  Slots slots{{static_cast<std::byte*>(std::aligned_alloc(kPage, kBytes)), &std::free}, nullptr};
  GLN_ASSIGN_OR_RETURN(slots.region, domain->register_memory({slots.memory.get(), kBytes}, IBV_ACCESS_LOCAL_WRITE));
  auto link = std::unique_ptr<Link>(new Link(std::move(domain), std::move(slots), user, checksums));
  GLN_RETURN_IF_ERROR(link->open(channel));
  return link;
}

absl::Status Link::open(ibv_comp_channel* channel) {
  constexpr int kCompletions = static_cast<int>(Sender::kDepth) + kSlots + 1;
  queue_.reset(ibv_create_cq(domain_->device(), kCompletions, this, channel, 0));
  if (queue_ == nullptr) return verbs_error(errno, "can't make a completion queue");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap = {.max_send_wr = Sender::kDepth, .max_recv_wr = kSlots, .max_send_sge = 1, .max_recv_sge = 1};
  pair_.reset(ibv_create_qp(domain_->get(), &wanted));
  if (pair_ == nullptr) return verbs_error(errno, "can't make a queue pair");
  return absl::OkStatus();
}

absl::Status Link::make_ready(rdma_cm_id* id) {
  GLN_RETURN_IF_ERROR(move_to(id, pair_.get(), IBV_QPS_INIT, "initialized"));
  GLN_RETURN_IF_ERROR(receiver_.fill(pair_.get()));
  GLN_RETURN_IF_ERROR(move_to(id, pair_.get(), IBV_QPS_RTR, "ready to receive"));
  GLN_RETURN_IF_ERROR(move_to(id, pair_.get(), IBV_QPS_RTS, "ready to send"));
  return arm();
}

absl::Status Link::trust() {
  receiver_.trust();
  ibv_qp_attr attributes{};
  attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  return modify(pair_.get(), &attributes, IBV_QP_ACCESS_FLAGS, "writable");
}

absl::Status Link::write() { return pair_ == nullptr ? absl::OkStatus() : sender_.post(pair_.get()); }

void Link::forget_user() {
  receiver_.forget_user();
  sender_.drop_waiting();
}

int Link::take_completions() { return ibv_poll_cq(queue_.get(), kCompletionsAtOnce, taken_.data()); }

bool Link::peek() {
  if (taken_count_ == 0 && pair_ != nullptr) taken_count_ = std::max(0, take_completions());
  return taken_count_ > 0;
}

absl::StatusOr<bool> Link::read() {
  for (int turn = 0; turn < kTurns; ++turn) {
    if (pair_ == nullptr) return false;
    const int count = taken_count_ > 0 ? std::exchange(taken_count_, 0) : take_completions();
    if (count < 0) return absl::UnavailableError("the adapter's completion queue can't be read");
    busy_ = busy_ || count > 0;
    for (int i = 0; i < count; ++i) {
      GLN_RETURN_IF_ERROR(on_completion(taken_[static_cast<size_t>(i)]));
      if (pair_ == nullptr) return false;  // it was ended in there
    }
    GLN_RETURN_IF_ERROR(receiver_.refill(pair_.get()));
    if (count < kCompletionsAtOnce) return false;
  }
  return true;
}

absl::Status Link::on_completion(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) return completion_error(completion);
  switch (completion.opcode) {
    case IBV_WC_RECV:
      heard_ = true;
      return receiver_.on_packet(static_cast<uint16_t>(completion.wr_id), completion.byte_len);
    case IBV_WC_RECV_RDMA_WITH_IMM:
      heard_ = true;
      return receiver_.on_written(static_cast<uint16_t>(completion.wr_id), ntohl(completion.imm_data),
                                  completion.byte_len);
    default:
      sender_.on_completed(completion.wr_id);
      return absl::OkStatus();
  }
}

absl::Status Link::arm() {
  const int error = ibv_req_notify_cq(queue_.get(), 0);
  return error == 0 ? absl::OkStatus() : verbs_error(error, "can't ask for events of a completion queue");
}

void Link::end() {
  pair_.reset();
  sender_.clear();
  receiver_.clear();
}

}  // namespace gleaner::transport::rdma
