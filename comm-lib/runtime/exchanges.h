// Exchanges holds the protocol cores of one worker (exchange/exchange.h) and passes each piece and each frame on to the
// one concerned. Pure. Belongs to one thread at a time. Once warm, a partition costs no allocation, lock or system
// call.
//
// Two kinds of tensors exist, and one exchange for each:
// - Owners sum the partitions of a tensor without a schedule (kOwners). Their answers arrive on the connections that
//   this worker has dialed.
// - The workers sum a tensor with a schedule (plan::Tensor::schedule) among themselves (kWorkers). Each frame leaves on
//   the connection that its sender has dialed, and so arrives on a connection that this worker has accepted.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/exchange.h"

namespace gleaner::runtime {

class Exchanges {
 public:
  enum class SummedBy { kOwners, kWorkers };

  // Adds the exchange for one kind of tensors, before the first apply().
  void add(SummedBy kind, std::unique_ptr<exchange::Exchange> exchange);

  // Prepares a plan. Unimplemented: a tensor has a schedule, and no exchange executes schedules. Other errors are those
  // of Exchange::prepare().
  absl::Status prepare(const plan::Plan& plan);
  // Brings a plan that prepare() has accepted into force.
  absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now);

  // Starts a piece. A piece that can't start ends with the error, in actions().
  void start(exchange::PieceRequest piece, absl::Duration now);
  // Returns Exchange::step() of a partition of the plan in force.
  uint64_t step(uint32_t tensor, uint32_t partition) const { return of(tensor).step(tensor, partition); }

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

  bool idle() const;  // all of them
  // Returns the members that any exchange waits for, each once.
  std::vector<uint32_t> waiting_for() const;

  // Returns the actions that are to be carried out. The caller clears each part that it has carried out.
  exchange::Actions& actions() { return actions_; }
  bool has_actions() const { return !actions_.sends.empty() || !actions_.done.empty(); }

 private:
  exchange::Exchange* at(SummedBy kind) const { return by_kind_[static_cast<size_t>(kind)].get(); }
  exchange::Exchange& of(uint32_t tensor) const;

  std::array<std::unique_ptr<exchange::Exchange>, 2> by_kind_;  // null: none of this kind
  std::vector<exchange::Exchange*> all_;
  std::shared_ptr<const plan::Plan> plan_;  // in force
  exchange::Actions actions_;
};

}  // namespace gleaner::runtime
