// Lane is a further queue pair of a connection, over a pair of ports. It carries only payloads that the receiver has
// granted. All messages about these payloads (offers, grants, taken) go by the connection's own link, which also keeps
// frames in order.
//
// A lane's receive queue holds a work request for each possible offer. The sender uses an offer's number again only
// after `taken`: by then the receiver has got the payload and posted the work request again. So a work request is
// always posted, and receiver-not-ready can't happen. Immediate values need no receive memory, so a lane has none.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/verbs.h"

namespace gleaner::transport::rdma {

class Lane : public IdUser {
 public:
  // Handles an event of the lane's id. May destroy the lane.
  using OnEvent = std::function<void(Lane&, const rdma_cm_event&)>;

  // `number` is unique in the connection; `port` is this side's port, an index in the transport's ports().
  Lane(OnEvent on_event, uint16_t number, int port, uint64_t bits_per_second);
  ~Lane() override { end(); }

  // Sets the connection manager's id. The lane handles the id's events from then on.
  void set_id(CmId id);
  rdma_cm_id* id() const { return id_.get(); }
  // Makes the queue pair. `context` is the context of its completion queue.
  absl::Status open(std::shared_ptr<Domain> domain, ibv_comp_channel* channel, void* context);
  // Lets both sides write payloads by the lane. May only be called once the peer has been checked.
  absl::Status make_ready();
  void ignore_events() { on_event_ = nullptr; }

  uint16_t number() const { return number_; }
  int port() const { return port_; }
  uint64_t bits_per_second() const { return bits_per_second_; }
  uint32_t pair_number() const { return pair_->qp_num; }
  Domain& domain() const { return *domain_; }
  bool is_open() const { return pair_ != nullptr; }
  std::string name() const;  // of the device

  // Posts a WRITE of the payload `piece` to the peer's `address`, with this immediate value.
  absl::Status write(uint16_t offer, uint32_t immediate, ibv_sge piece, uint64_t address, uint32_t key);
  bool is_quiet() const { return writes_ == 0; }
  bool is_unreachable() const { return unreachable_; }  // the lane's adapter has given up the peer

  // Returns completions, at most one turn's worth. Posts a receive request again for each payload that has arrived.
  // Returns an error if a completion reports one.
  absl::StatusOr<std::span<const ibv_wc>> take();
  bool peek();         // whether take() has completions to return
  absl::Status arm();  // asks for an event of the next completion
  // Destroys the queue pair: no payload arrives or leaves by the lane after that. Idempotent.
  void end();

 private:
  void on_event(const rdma_cm_event& event) override;
  int poll();
  absl::Status refill(size_t count);

  static constexpr int kCompletionsAtOnce = 16;
  OnEvent on_event_;  // empty: events are ignored
  const uint16_t number_;
  const int port_;
  const uint64_t bits_per_second_;
  std::shared_ptr<Domain> domain_;
  CompletionQueue queue_;
  QueuePair pair_;
  CmId id_;
  bool is_ready_ = false;
  bool unreachable_ = false;
  size_t writes_ = 0;
  std::array<ibv_wc, kCompletionsAtOnce> taken_;
  int taken_count_ = 0;  // completions that peek() took
};

// A connection's lanes by number; null: none. Number 0, the connection's own link, is always null.
using LaneTable = std::array<std::unique_ptr<Lane>, kMostLanes + 1>;

}  // namespace gleaner::transport::rdma
