// Stages takes the requests of one rank through their stages: the sum over the local ranks, the push_pull over the
// network, and the copy back to the local ranks. With one local rank there is only the network stage. Local ranks above
// 0 have only the other two. The pieces (pieces.h) of a large tensor go through the stages independently of each other.
//
// Belongs to the I/O thread. Other threads may call wake(). While the I/O thread is in wait(), one other thread may
// call register_memory() and unregister_memory() and, if there is one local rank, start(), advance() and has_work().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/local/group.h"
#include "comm-lib/runtime/config.h"
#include "comm-lib/runtime/network.h"
#include "comm-lib/runtime/pieces.h"
#include "comm-lib/runtime/registered_memory.h"
#include "comm-lib/runtime/request.h"
#include "common/base/waker.h"

namespace gleaner::runtime {

// The callbacks of Stages.
class StagesListener {
 public:
  virtual ~StagesListener() = default;
  // A request has ended; OK: its output holds the result.
  virtual void on_done(uint64_t handle, const absl::Status& status) = 0;
  // A summer is lost (NetworkListener::on_lost). The listener reports it to the coordinator and, if `ends_job`, calls
  // Stages::fail().
  virtual void on_lost(uint32_t member, bool ends_job, const absl::Status& why) = 0;
  // See NetworkListener::on_owner_follows().
  virtual void on_owner_follows(uint32_t epoch, bool by_rank) = 0;
  // The session has failed, or a local rank is lost; the listener calls Stages::fail().
  virtual void on_failed(const absl::Status& status) = 0;
};

class Stages : private NetworkListener, private local::Events {
 public:
  static absl::StatusOr<std::unique_ptr<Stages>> create(const Env& env, const Config& config,
                                                        const kernels::Kernels* kernels, trace::Recorder* recorder,
                                                        StagesListener* listener);
  ~Stages() override;

  std::string address() const;  // of the colocated summer; empty on local ranks above 0
  std::vector<std::string> endpoints() const;
  void wake();  // any thread

  absl::Status on_welcome(const control::Welcome& welcome);
  absl::Status prepare(std::shared_ptr<const plan::Plan> plan);
  absl::Status commit(uint32_t epoch);
  void on_coordinator_lost();
  void on_coordinator_found();
  void on_coordinator_gone(const absl::Status& why);
  void set_ending();
  void start(const Request& request);
  // Registers memory for the inputs of many requests. Errors are those of RegisteredMemory.
  absl::Status register_memory(MutableBytes memory) { return users_memory_.add(memory); }
  absl::Status unregister_memory(const void* begin) { return users_memory_.remove(begin); }
  void fail(const absl::Status& status);
  // Waits up to `timeout` until poll() has something to do.
  void wait(absl::Duration timeout);
  void poll();
  void advance();

  bool has_work() const;  // poll() has work that needs no wait
  bool connected() const;
  bool idle() const;       // this rank has nothing that another member needs
  bool may_leave() const;  // the same, for a rank that begins no further request
  std::string describe_waiting() const;
  std::string describe_transports() const;

  const Network* network() const { return network_.get(); }  // null on local ranks above 0

 private:
  Stages(const Env& env, const Config& config, const kernels::Kernels* kernels, StagesListener* listener);
  // A request that goes through the group.
  struct GroupRequest {
    uint64_t handle = 0;
    uint32_t missing = 0;  // number of pieces that are not done
    absl::Status status;   // the first error
  };

  bool leads() const { return config_.local_rank == 0; }

  void on_summed(uint64_t id, const absl::Status& status) override;
  void on_lost(uint32_t member, bool ends_job, const absl::Status& why) override;
  void on_owner_follows(uint32_t epoch, bool by_rank) override;
  void on_connected() override;
  // Overrides both NetworkListener and local::Events.
  void on_failed(const absl::Status& status) override;
  // Override local::Events. A tensor of the group is a piece of a tensor of the plan.
  void on_reduced(uint32_t piece, ReduceOp op, MutableBytes sum, MutableBytes result) override;
  void on_done(uint32_t piece, const absl::Status& status) override;

  const Env env_;
  const Config config_;
  const kernels::Kernels* const kernels_;
  StagesListener* const listener_;
  std::unique_ptr<Waker> waker_;  // local ranks above 0
  // Only if g > 1, from the welcome on; declared before network_, which uses its memory
  std::unique_ptr<local::Group> group_;
  std::unique_ptr<Network> network_;  // local rank 0
  std::shared_ptr<const plan::Plan> prepared_;
  RegisteredMemory users_memory_;             // memory that users have registered
  RegisteredMemory group_memory_;             // memory of the group's sums and results
  Pieces pieces_;                             // g > 1
  std::vector<GroupRequest> group_requests_;  // by tensor: the latest one; g > 1
  bool group_connected_ = false;
  wire::Secret secret_{};  // the secret that the group was made with
};

}  // namespace gleaner::runtime
