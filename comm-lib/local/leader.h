// Leader is local rank 0: it waits for the other ranks, makes the shared memory, records the progress of every
// push_pull, and tells all ranks their next step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm-lib/local/gpu_agreement.h"
#include "comm-lib/local/local_rank.h"
#include "comm-lib/local/push_pull_record.h"
#include "comm-lib/local/segment.h"

namespace gleaner::local {

class Leader final : public LocalRank {
 public:
  static absl::StatusOr<std::unique_ptr<Group>> create(const Env& env, const Options& options,
                                                       const kernels::Kernels* kernels, Events* events);
  ~Leader() override;

  void publish(uint32_t tensor, const absl::Status& status) override;
  MutableBytes sums_beside(uint32_t tensor) const override;
  bool idle() const override;

 private:
  // Tensors that were registered together, and their memory.
  struct Batch {
    Layout layout;
    std::unique_ptr<Segment> segment;
  };

  Leader(const Env& env, const Options& options, const kernels::Kernels* kernels, Events* events);

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

  void accept();
  absl::Status greet(Peer& peer, const HelloPayload& hello);
  void refuse(Peer& peer, const absl::Status& status);
  void begin_if_complete();
  std::string missing() const;
  void hand_out(Batch& batch);
  absl::Status on_ready(uint32_t rank, const Message& message);
  absl::Status on_slice(uint32_t rank, MessageType type, uint32_t tensor, uint64_t step);
  absl::Status on_left(Peer& peer);
  absl::Status on_gpus(uint32_t rank, const Message& message, ConstBytes payload);
  void tell_all(const Message& message);
  void go_on(uint32_t tensor, PushPullRecord::Next next);
  void copy_to_host(uint32_t tensor);
  absl::Status differing_ops(uint32_t tensor) const;
  void spread(uint32_t tensor, const absl::Status& status);

  Descriptor listener_;
  // All connections, also those of peers that have not proved their identity.
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> ranks_;  // by local rank; null: not connected, or the leader itself
  std::string last_refusal_;
  PushPullRecord record_;
  GpuAgreement gpus_;
  std::vector<Batch> batches_;
  size_t handed_out_ = 0;  // number of batches handed out, from the front
};

}  // namespace gleaner::local
