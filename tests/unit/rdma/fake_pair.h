// FakePair is a queue pair for tests without an adapter: it records the requests that are posted to it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/buffer.h"
#include "common/transport/rdma/verbs.h"

namespace gleaner::transport::rdma {

struct FakePair {
  static int post_send(ibv_qp* pair, ibv_send_wr* first, ibv_send_wr**) {
    auto& fake = *static_cast<FakePair*>(pair->qp_context);
    for (; first != nullptr; first = first->next) {
      fake.posted.push_back(first->wr_id);
      if ((first->send_flags & IBV_SEND_SIGNALED) != 0) fake.signaled.push_back(first->wr_id);
      fake.sent.emplace_back(reinterpret_cast<const std::byte*>(first->sg_list->addr), first->sg_list->length);
    }
    return fake.error;
  }
  FakePair() {
    context.ops.post_send = &post_send;
    pair.context = &context;
    pair.qp_context = this;
  }
  FakePair(const FakePair&) = delete;
  FakePair& operator=(const FakePair&) = delete;

  ibv_context context{};
  ibv_qp pair{};
  int error = 0;                           // returned by post_send()
  std::vector<uint64_t> posted, signaled;  // numbers of requests
  std::vector<ConstBytes> sent;            // memory of each request
};

}  // namespace gleaner::transport::rdma
