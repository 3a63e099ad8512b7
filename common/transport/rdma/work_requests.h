// WorkRequests holds the work requests of one queue pair's send queue. It collects requests, posts them together, and
// keeps the resource of each request until the request completes. Pure but for post().
//
// Each request holds a *resource*, a number that the caller chooses, such as that of a send slot. An adapter completes
// the requests of a queue pair in order, so one completion implies those of the requests before it. One request in
// kSignalEvery, and the last of those posted together, ask for a completion.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/transport/rdma/verbs.h"

namespace gleaner::transport::rdma {

class WorkRequests {
 public:
  static constexpr size_t kMost = 64;  // not completed at a time
  static constexpr uint64_t kSignalEvery = 8;

  // Adds a request with one scatter-gather entry; the caller sets its operation. At most kMost requests may be added
  // and not completed. The reference is valid until post().
  ibv_send_wr& add(ibv_sge piece, uint16_t resource) {
    resources_[added_ % kMost] = resource;
    pieces_[count_] = piece;
    ibv_send_wr& request = requests_[count_];
    request = {};
    request.wr_id = added_;
    request.sg_list = &pieces_[count_];
    request.num_sge = 1;
    if (added_ % kSignalEvery == 0) request.send_flags = IBV_SEND_SIGNALED;
    if (count_ > 0) requests_[count_ - 1].next = &request;
    ++count_;
    ++added_;
    return request;
  }

  // Posts the requests that were added since the last call, if any.
  absl::Status post(ibv_qp* pair) {
    if (count_ == 0) return absl::OkStatus();
    requests_[count_ - 1].send_flags |= IBV_SEND_SIGNALED;
    count_ = 0;
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(pair, requests_.data(), &bad);
    return error == 0 ? absl::OkStatus() : verbs_error(error, "the adapter accepts no more send requests");
  }

  // Records that request `number` (ibv_wc::wr_id) and all requests before it have completed. Calls release(resource)
  // for each of them.
  template <typename Release>
  void complete(uint64_t number, Release release) {
    for (; completed_ <= number; ++completed_) release(resources_[completed_ % kMost]);
  }

  bool all_completed() const { return added_ == completed_; }

 private:
  std::array<uint16_t, kMost> resources_;  // by number of the request
  uint64_t added_ = 0;
  uint64_t completed_ = 0;
  // Requests to post together, each with its scatter-gather entry.
  std::array<ibv_send_wr, kMost> requests_;
  std::array<ibv_sge, kMost> pieces_;
  size_t count_ = 0;
};

}  // namespace gleaner::transport::rdma
