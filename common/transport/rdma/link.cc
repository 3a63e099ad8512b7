#include "common/transport/rdma/link.h"

#include <arpa/inet.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::transport::rdma {
namespace {

constexpr int kTurns = 4;  // of kCompletionsAtOnce, so that a link does not starve others
constexpr size_t kPage = 4096;

}  // namespace

Link::Link(std::shared_ptr<Domain> domain, Slots slots, Receiver::User* user, bool checksums)
    : domain_(std::move(domain)),
      slots_(std::move(slots)),
      sender_(domain_.get(), &lanes_, &credits_, MutableBytes(slots_.memory.get(), Sender::kMemory),
              slots_.region->lkey, checksums),
      receiver_(user, domain_.get(), &lanes_, &credits_, &sender_,
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
  GLN_ASSIGN_OR_RETURN(pair_, make_queue_pair(domain_->get(), queue_.get(), Sender::kDepth, kSlots));
  return absl::OkStatus();
}

absl::Status Link::make_ready(rdma_cm_id* id) {
  GLN_RETURN_IF_ERROR(move_to(id, pair_.get(), IBV_QPS_INIT));
  GLN_RETURN_IF_ERROR(receiver_.fill(pair_.get()));
  GLN_RETURN_IF_ERROR(move_to(id, pair_.get(), IBV_QPS_RTR));
  GLN_RETURN_IF_ERROR(move_to(id, pair_.get(), IBV_QPS_RTS));
  return arm();
}

absl::Status Link::trust() {
  receiver_.trust();
  return let_write(pair_.get());
}

void Link::add_lane(std::unique_ptr<Lane> lane) {
  const uint16_t number = lane->number();
  lanes_[number] = std::move(lane);
}

absl::Status Link::write() { return pair_ == nullptr ? absl::OkStatus() : sender_.post(pair_.get()); }

void Link::forget_user() {
  receiver_.forget_user();
  sender_.drop_waiting();
  for (const auto& lane : lanes_) {
    if (lane != nullptr) lane->ignore_events();
  }
}

bool Link::is_quiet() const {
  return sender_.is_quiet() && std::all_of(lanes_.begin(), lanes_.end(),
                                           [](const auto& lane) { return lane == nullptr || lane->is_quiet(); });
}

int Link::take_completions() { return ibv_poll_cq(queue_.get(), kCompletionsAtOnce, taken_.data()); }

bool Link::peek() {
  if (taken_count_ == 0 && pair_ != nullptr) taken_count_ = std::max(0, take_completions());
  bool came = taken_count_ > 0;
  for (const auto& lane : lanes_) came = (lane != nullptr && lane->peek()) || came;
  return came;
}

absl::StatusOr<bool> Link::read() {
  GLN_ASSIGN_OR_RETURN(const bool more, read_own());
  GLN_ASSIGN_OR_RETURN(const bool more_by_lanes, read_lanes());
  return more || more_by_lanes;
}

absl::StatusOr<bool> Link::read_lanes() {
  bool more = false;
  for (uint16_t i = 1; i < lanes_.size() && pair_ != nullptr; ++i) {
    if (lanes_[i] == nullptr || !lanes_[i]->is_open()) continue;
    const auto came = lanes_[i]->take();
    const absl::Status status = came.ok() ? read_lane(*lanes_[i], *came) : came.status();
    if (!status.ok()) {
      if (lanes_[i]->is_unreachable()) failed_path_ = i;
      return absl::Status(status.code(), absl::StrCat("its lane over ", lanes_[i]->name(), ": ", status.message()));
    }
    more = more || !came->empty();
  }
  return more;
}

absl::Status Link::read_lane(Lane& lane, std::span<const ibv_wc> completions) {
  for (const ibv_wc& one : completions) {
    busy_ = true;
    if (one.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      heard_ = true;
      GLN_RETURN_IF_ERROR(receiver_.on_lane_written(lane, ntohl(one.imm_data), one.byte_len));
    } else {
      sender_.on_lane_completed(static_cast<uint16_t>(one.wr_id));
    }
    if (pair_ == nullptr) break;  // the handler of a frame has closed the connection
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Link::read_own() {
  for (int turn = 0; turn < kTurns; ++turn) {
    if (pair_ == nullptr) return false;
    const int count = taken_count_ > 0 ? std::exchange(taken_count_, 0) : take_completions();
    if (count < 0) return absl::UnavailableError("the adapter's completion queue can't be read");
    busy_ = busy_ || count > 0;
    for (int i = 0; i < count; ++i) {
      GLN_RETURN_IF_ERROR(on_completion(taken_[static_cast<size_t>(i)]));
      if (pair_ == nullptr) return false;  // the handler of a frame has closed the connection
    }
    GLN_RETURN_IF_ERROR(receiver_.refill(pair_.get()));
    if (count < kCompletionsAtOnce) return false;
  }
  return true;
}

absl::Status Link::on_completion(const ibv_wc& completion) {
  if (completion.status == IBV_WC_RETRY_EXC_ERR) failed_path_ = 0;
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
  for (const auto& lane : lanes_) {
    if (lane != nullptr) GLN_RETURN_IF_ERROR(lane->arm());
  }
  const int error = ibv_req_notify_cq(queue_.get(), 0);
  return error == 0 ? absl::OkStatus() : verbs_error(error, "can't ask for events of a completion queue");
}

void Link::end() {
  pair_.reset();
  for (const auto& lane : lanes_) {
    if (lane != nullptr) lane->end();
  }
  sender_.clear();
  receiver_.clear();
}

}  // namespace gleaner::transport::rdma
