// The stages of a push_pull on one rank: sum over the local ranks, push and pull over the network, hand back to the
// local ranks. With one local rank only the middle one; on local ranks above 0 only the outer two. A large tensor goes
// through them in pieces, each on its own.
//
// Belongs to the I/O thread. Others may call wake(), and, while that thread is in wait() and they keep out of each
// other's way, start() and advance() where there is one local rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/local/group.h"
#include "comm-lib/runtime/config.h"
#include "comm-lib/runtime/lasting_memory.h"
#include "comm-lib/runtime/network.h"
#include "comm-lib/runtime/pieces.h"
#include "common/base/waker.h"

namespace gleaner::runtime {

// One push_pull of this rank.
struct Exchange {
  uint64_t handle = 0;
  uint32_t tensor = 0;  // index in the plan
  ReduceOp op = ReduceOp::kSum;
  MutableBytes input;  // unchanged until done
  MutableBytes output;
};

class Stages : private Network::Events, private local::Events {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    virtual void on_done(uint64_t handle, const absl::Status& status) = 0;
    // A summer is out of reach, as Network::Events has it; the caller tells the coordinator and, if that ends the job,
    // calls fail().
    virtual void on_lost(uint32_t member, bool ends_job, const absl::Status& why) = 0;
    // The session can't go on, or a local rank is lost; the caller calls fail().
    virtual void on_owner_follows(uint32_t epoch, bool by_rank) = 0;
    virtual void on_failed(const absl::Status& status) = 0;
  };

  static absl::StatusOr<std::unique_ptr<Stages>> create(const Env& env, const Config& config,
                                                        const kernels::Kernels* kernels, trace::Recorder* recorder,
                                                        Events* events);
  ~Stages() override;

  std::string address() const;  // of the colocated summer; empty on local ranks above 0
  std::vector<std::string> endpoints() const;
  void wake();  // any thread

  absl::Status on_welcome(const member::Welcome& welcome);
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);
  void on_coordinator_lost();
  void on_coordinator_found();
  void on_coordinator_gone(const absl::Status& why);
  void set_ending();
  void start(const Exchange& exchange);
  // Inputs in this memory are known to lie there again and again. Errors are LastingMemory's.
  absl::Status register_memory(MutableBytes memory) { return lasting_.add(memory); }
  absl::Status unregister_memory(const void* begin) { return lasting_.remove(begin); }
  void fail(const absl::Status& status);
  // Waits until there is something for poll(), up to `timeout`.
  void wait(absl::Duration timeout);
  void poll();
  void advance();

  bool has_work() const;  // for poll(), without a wait
  bool connected() const;
  bool idle() const;       // nobody needs anything more of this rank
  bool may_leave() const;  // the same, once it begins nothing more
  std::string describe_waiting() const;
  std::string describe_transports() const;

  const Network* network() const { return network_.get(); }  // null on local ranks above 0

 private:
  Stages(const Env& env, const Config& config, const kernels::Kernels* kernels, Events* events);
  // An exchange that local ranks take part in.
  struct Flight {
    uint64_t handle = 0;
    uint32_t missing = 0;  // pieces that are not done
    absl::Status status;   // the first error
  };

  bool leads() const { return config_.local_rank == 0; }

  void on_summed(uint64_t request, const absl::Status& status) override;
  void on_lost(uint32_t member, bool ends_job, const absl::Status& why) override;
  void on_owner_follows(uint32_t epoch, bool by_rank) override;
  void on_connected() override;
  // Of the network and of the group.
  void on_failed(const absl::Status& status) override;
  // Of the group, whose tensors are pieces of ours.
  void on_reduced(uint32_t piece, ReduceOp op, MutableBytes sum) override;
  void on_done(uint32_t piece, const absl::Status& status) override;

  const Env env_;
  const Config config_;
  const kernels::Kernels* const kernels_;
  Events* const events_;
  std::unique_ptr<Waker> waker_;         // local ranks above 0
  std::unique_ptr<local::Group> group_;  // g > 1, from the welcome on; its memory outlives the network's use of it
  std::unique_ptr<Network> network_;     // local rank 0
  std::shared_ptr<const plan::Plan> prepared_;
  LastingMemory lasting_;        // users'
  LastingMemory group_memory_;   // the group's sums
  Pieces pieces_;                // g > 1
  std::vector<Flight> flights_;  // by tensor; g > 1
  bool group_connected_ = false;
  wire::Secret secret_{};  // that the group was made with
};

}  // namespace gleaner::runtime
