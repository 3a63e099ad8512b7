// A further queue pair of a connection's, over another port: payloads that were granted are written by it, and nothing
// else. What is said about them (offers, grants, taken) goes by the connection's own link, and so does their order.
//
// Its receive queue has a request for each offer there can be, and an offer's number is used again only after the peer
// has told that it took the payload and filled the request again: so there always is one. Immediate values need no
// memory, so a lane has none.
#pragma once

#include <array>
#include <cstdint>
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
  class User {
   public:
    virtual ~User() = default;
    // The lane may be gone when it returns.
    virtual void on_lane_event(Lane& lane, const rdma_cm_event& event) = 0;
  };

  // From our port (of the transport's). `number`: of the connection's.
  Lane(User* user, uint16_t number, int port, uint64_t bits_per_second);
  ~Lane() override { end(); }

  // What the connection manager knows it by; from now on events of it come.
  void set_id(CmId id);
  rdma_cm_id* id() const { return id_.get(); }
  // `context`: of its completion queue.
  absl::Status open(std::shared_ptr<Domain> domain, ibv_comp_channel* channel, void* context);
  // Its peer has been checked: it may be written over, both ways.
  absl::Status make_ready();
  void forget_user() { user_ = nullptr; }

  uint16_t number() const { return number_; }
  int port() const { return port_; }
  uint64_t bits_per_second() const { return bits_per_second_; }
  uint32_t pair_number() const { return pair_->qp_num; }
  Domain& domain() const { return *domain_; }
  bool is_open() const { return pair_ != nullptr; }
  std::string name() const;  // of the device

  // The payload at `piece` to there, with this immediate value.
  absl::Status write(uint16_t offer, uint32_t immediate, ibv_sge piece, uint64_t address, uint32_t key);
  bool is_quiet() const { return writes_ == 0; }
  bool is_unreachable() const { return unreachable_; }  // its adapter gave the peer up

  // Completions, a turn's worth; those that say a payload has come have their request filled again. Fails where one of
  // them has.
  absl::StatusOr<std::span<const ibv_wc>> take();
  bool peek();
  absl::Status arm();
  // Nothing comes or leaves over it any more. Idempotent.
  void end();

 private:
  void on_event(const rdma_cm_event& event) override {
    if (user_ != nullptr) user_->on_lane_event(*this, event);
  }
  int poll();
  absl::Status refill(size_t count);

  static constexpr int kCompletionsAtOnce = 16;
  User* user_;
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
  int taken_count_ = 0;  // that peek() took
};

// A connection's, by number; null: there is none. 0 never is.
using LaneTable = std::array<std::unique_ptr<Lane>, kMostLanes + 1>;

}  // namespace gleaner::transport::rdma
