// Exchanges holds the protocol cores of one worker (exchange/exchange.h) and passes each piece and each frame to the
// core that sums its tensor. Pure. Belongs to one thread at a time. Once warm, a partition costs no allocation, lock or
// system call.
//
// Two kinds of strategies exist, and one exchange for each:
// - Owners sum the partitions of a tensor without a schedule (kOwners). Their answers arrive on the connections that
//   this worker has dialed.
// - The workers sum a tensor with a schedule (plan::Tensor::schedule) among themselves (kWorkers). Each frame leaves on
//   the connection that its sender has dialed, and so arrives on a connection that this worker has accepted.
//
// Plans may change the strategies of tensors. Strategies (exchange/strategies.h) says which exchange sums a push_pull.
// While it holds a push_pull, because a plan that changes its strategy is only prepared, the pieces wait here.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/exchange.h"
#include "comm-lib/exchange/strategies.h"

namespace gleaner::exchange {

class Exchanges {
 public:
  enum class SummedBy { kOwners, kWorkers };

  // Adds the exchange for one kind of tensors, before the first apply().
  void add(SummedBy kind, std::unique_ptr<exchange::Exchange> exchange);

  // Prepares a plan, which replaces the plan that was prepared before. Unimplemented: a tensor has a schedule, and no
  // exchange executes schedules. Other errors are those of check_successor(), Exchange::prepare() and
  // Strategies::prepare(). Held pieces start that no longer wait for a plan.
  absl::Status prepare(const plan::Plan& plan, absl::Duration now);
  // Forgets the prepared plan, if it is that of `epoch`, and starts the pieces that were held for it.
  void withdraw(uint32_t epoch, absl::Duration now);
  // Brings a plan that prepare() has accepted into force, and starts the pieces that were held for it.
  absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now);

  // Starts a piece, or holds it. A piece that can't start ends with the error, in actions().
  void start(exchange::PieceRequest piece, absl::Duration now);
  // Returns the number of the partition's push_pull in flight, by any strategy, or else of its next one. The plan in
  // force must have the partition.
  uint64_t step(uint32_t tensor, uint32_t partition) const;
  // Returns the name of a tensor whose pieces are held; empty: no piece is held.
  std::string held_tensor() const { return held_.empty() ? "" : plan_->tensors[held_.front().tensor].name; }

  // Returns whether on_accepted_frame() takes this frame; a colocated summer gets all others.
  bool takes_accepted(wire::FrameType type) const;
  // Handle a frame from `member` on a connection that this worker has dialed, or accepted.
  absl::Status on_frame(uint32_t member, const wire::Header& header, Buffer payload, absl::Duration now);
  absl::Status on_accepted_frame(uint32_t member, const wire::Header& header, Buffer payload, absl::Duration now);

  // These call the functions of the same names of every exchange.
  void on_connected(uint32_t member, absl::Duration now);
  void on_disconnected(uint32_t member);
  void set_round_trip(absl::Duration round_trip);
  void on_tick(absl::Duration now);
  void set_ending(std::span<const uint32_t> left);
  void fail(const absl::Status& status);

  bool idle() const;  // all of them, and no piece is held
  // Returns the members that any exchange waits for, each once.
  std::vector<uint32_t> waiting_for() const;

  // Returns the actions that are to be carried out. The caller clears each part that it has carried out.
  exchange::Actions& actions() { return actions_; }
  bool has_actions() const { return !actions_.sends.empty() || !actions_.done.empty(); }

 private:
  exchange::Exchange* at(SummedBy kind) const { return by_kind_[static_cast<size_t>(kind)].get(); }
  absl::Status check_executable(const plan::Plan& plan) const;
  void start_held(absl::Duration now);

  std::array<std::unique_ptr<exchange::Exchange>, 2> by_kind_;  // null: none of this kind
  std::vector<exchange::Exchange*> all_;
  std::shared_ptr<const plan::Plan> plan_;  // in force
  exchange::Strategies strategies_;
  std::vector<exchange::PieceRequest> held_;      // in the order of start()
  std::vector<exchange::PieceRequest> starting_;  // the pieces that start_held() works on; else empty
  exchange::Actions actions_;
};

}  // namespace gleaner::exchange
