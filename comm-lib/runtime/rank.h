// Rank is one rank of a job: the implementation of a gln_session. It checks the arguments of its callers, and connects
// the parts of the rank: its work on the I/O thread (rank_io.h), the state that users see (rank_state.h), the figures
// (statistics.h), and the stream to the coordinator (common/member). User threads call all public functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "comm-lib/runtime/config.h"
#include "comm-lib/runtime/declarations.h"
#include "comm-lib/runtime/handles.h"
#include "comm-lib/runtime/rank_device.h"
#include "comm-lib/runtime/rank_io.h"
#include "comm-lib/runtime/rank_state.h"
#include "comm-lib/runtime/statistics.h"

namespace gleaner::runtime {

class Rank {
 public:
  // Joins the job, and returns when every member has joined and is connected. DeadlineExceeded: this has taken 5 s
  // longer than the open timeout; the message names the missing members.
  static absl::StatusOr<std::unique_ptr<Rank>> open(const Config& config);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  gln_rank_info rank_info() const { return state_.rank_info(); }
  gln_stats stats() const { return state_.stats(); }
  // Returns the text of NetworkStage::describe_transports(), up to 250 ms old; empty on local ranks above 0.
  std::string transports() const { return state_.transports(); }
  // Returns the number of workers that wait for the next round of an elastic job.
  uint32_t newcomers() const { return state_.newcomers(); }

  absl::StatusOr<uint32_t> declare(plan::Tensor tensor);
  // Declares a tensor of a group, whose members are ranks of workers with one local rank.
  absl::StatusOr<uint32_t> declare_for_members(plan::Tensor tensor);
  // `gpu`: the memory is that of a GPU, and is used on this stream of the program. Without it, it is the host's.
  absl::StatusOr<uint64_t> push_pull(uint32_t tensor, const void* input, void* output, ReduceOp op,
                                     std::optional<DeviceStream> gpu = {});
  // Make a group of workers, remove it, and start a call of it (comm-lib/executor/calls.h).
  absl::Status add_group(uint32_t group, std::vector<uint32_t> members);
  absl::Status remove_group(uint32_t group);
  absl::StatusOr<uint64_t> call(executor::Call call);
  absl::StatusOr<bool> has_arrived(uint32_t group);
  Handles& handles() { return handles_; }
  // Waits as Handles::wait(), and counts the time waited unless the request was done before. DeadlineExceeded: if the
  // handle is of a call, the message says for whom it waits. Returns the outcome. If
  // the memory is that of a GPU, all that the program queues from now on, on `stream` or else on that of the request,
  // comes after the request's copies; if the stream can't wait, returns the driver's error and keeps the handle open.
  absl::Status wait(uint64_t handle, absl::Duration timeout, std::optional<device::CallerStream> stream = {});
  // Counts time that the program has waited for requests in other ways.
  void add_wait(absl::Duration time) { statistics_.add_wait(time); }
  void step() { io_.step(); }
  void save(int64_t bytes) { io_.save(bytes); }
  // Has reports tell the packs that the program has chosen.
  void set_packs(const control::Packs& packs) { statistics_.set_packs(packs); }

  // Returns tensor_plan() of a declared tensor. InvalidArgument: there is no such tensor. FailedPrecondition: no plan
  // in force has it.
  absl::StatusOr<std::string> tensor_plan(uint32_t tensor);
  // See RankIo's functions of the same names.
  absl::Status check_on_host(ConstBytes memory) { return device_.check_on_host(memory); }
  absl::Status register_memory(MutableBytes memory) { return io_.register_memory(memory); }
  absl::Status unregister_memory(const void* begin) { return io_.unregister_memory(begin); }

  // Leaves the job and ends the session: only the destructor may follow. kToReturn: this process will join the job's
  // next round.
  enum class Leave { kCleanly, kFailed, kToReturn };
  absl::Status close(Leave how);

 private:
  explicit Rank(const Config& config);
  absl::Status join();
  absl::Status wait_for_all_ranks();
  absl::Status wait_until_quiet();
  void stop();

  const Config config_;
  SystemEnv system_;
  const Env& env_;
  std::optional<kernels::Kernels> kernels_;
  Declarations declarations_;
  RankDevice device_;
  Handles handles_;
  RankState state_;
  Statistics statistics_;  // guarded by the turn of io_, except add_wait()
  RankIo io_;
  std::unique_ptr<member::Client> client_;
};

}  // namespace gleaner::runtime
