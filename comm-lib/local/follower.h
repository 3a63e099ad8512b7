// Follower is a local rank above 0: it connects to the leader and follows the leader's messages.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "comm-lib/local/local_rank.h"
#include "comm-lib/local/segment.h"

namespace gleaner::local {

class Follower final : public LocalRank {
 public:
  static absl::StatusOr<std::unique_ptr<Group>> create(const Env& env, const Options& options,
                                                       const kernels::Kernels* kernels, Events* events);
  ~Follower() override;

  void publish(uint32_t tensor, const absl::Status& status) override;
  MutableBytes sums_beside(uint32_t /*tensor*/) const override { return {}; }
  bool idle() const override;

 private:
  // The leader's SEGMENT message about tensors that were registered together.
  struct SegmentOffer {
    uint32_t first = 0;
    uint64_t count = 0;
    SegmentPayload payload;
    Descriptor file;
  };

  using LocalRank::LocalRank;

  void on_tick() override;
  void on_readable(int descriptor) override;
  absl::Status on_message(Peer& peer, const Message& message, ConstBytes payload, Descriptor attached) override;
  void on_broken(Peer& peer, const absl::Status& status) override;
  void on_gone(Peer& peer) override;
  absl::Status on_registered(Layout layout) override;
  void on_stage(const Requests::Finished& finished) override;
  void work() override;
  bool has_more_work() const override;
  void flush() override;
  void tell_leader(const Message& message, ConstBytes payload) override;
  void close(const Message& last, ConstBytes payload) override;

  void connect();
  absl::Status on_left();
  absl::Status accept(const Layout& mine, SegmentOffer offer);

  std::unique_ptr<Peer> leader_;  // null: not connected yet
  // Registrations of this rank and offers of the leader come in the same order. The one that comes first waits for the
  // other.
  std::deque<Layout> registered_;
  std::deque<SegmentOffer> offered_;
  std::vector<std::unique_ptr<Segment>> segments_;
};

}  // namespace gleaner::local
