// Worker: a simulated worker, with the real exchanges (a session and an executor of schedules), a real engine and the
// real supervision of its connections. Its training script starts push_pulls in its own order and at its own pace, and
// checks every sum.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm-lib/exchange/exchanges.h"
#include "comm-lib/executor/executor.h"
#include "comm-lib/session/session.h"
#include "comm-lib/supervision/hold_limit.h"
#include "comm-lib/supervision/reports.h"
#include "comm-lib/supervision/supervisor.h"
#include "tests/protocol_sim/follower.h"
#include "tests/protocol_sim/summer.h"
#include "tests/protocol_sim/world.h"

namespace gleaner::sim {

class Worker final : private Follower::Events {
 public:
  Worker(uint32_t index, const kernels::Kernels* kernels, World* world, Control* control);

  void begin();
  void deliver_answer(uint32_t process, const wire::Header& header, const Buffer& payload);
  void connected_to_summer(uint32_t worker);
  // Delivers a frame on a connection that another worker has dialed: a slice, or a frame to the colocated summer.
  void deliver_from_worker(uint32_t worker, const wire::Header& header, const Buffer& payload);
  void tick();
  void pause(Nanoseconds duration) { process_.pause(duration); }
  void break_stream() { follower_.break_stream(); }
  // Called when this worker sees that its connection to this process broke. `why` is DeadlineExceeded if the process
  // was silent.
  void lose(uint32_t process, const absl::Status& why = absl::UnavailableError("connection reset"));
  bool is_paused() const { return process_.is_paused(); }
  // Breaks this worker's stream just after its next report, so that the report may be lost.
  void lose_next_report() { loses_report_ = true; }

  std::string name() const { return absl::StrCat("worker ", index_); }
  // Until `until` members may end with an error that names this worker.
  void may_cause_errors(Nanoseconds until);
  bool finished() const { return over_; }
  bool has_begun() const { return plan_ != nullptr; }
  // Returns the plan that the worker has prepared if it changes strategies; null: none.
  const plan::Plan* prepared_change() const;
  bool follows(uint32_t epoch) const { return !over_ && !leaving_ && plan_ != nullptr && plan_->epoch == epoch; }
  const plan::Plan& plan() const { return *plan_; }
  bool has_all_tensors() const { return !over_ && !leaving_ && program_.size() == tensors_.size(); }
  // The worker has ended with an error.
  bool failed() const { return failed_; }
  // Ends the worker's process. Returns false if it had ended before.
  bool stop();
  // The process ends, or stops for good and keeps its connections. It never learns how the job ends.
  void crash();
  void freeze();
  bool is_lost() const { return lost_; }
  // Some push_pulls wait for a change of strategy.
  bool holds() const { return !over_ && !process_.is_dead() && !exchanges_.held_tensor().empty(); }
  std::string describe() const;
  void check_end() const;

 private:
  struct Tensor {
    uint64_t step = 0;    // the step in flight, or else the next one
    uint64_t begun = 0;   // number of push_pulls that have begun
    bool wanted = false;  // the program waits for the plan to have this tensor, to start a push_pull
    bool declared = false;
    std::vector<std::byte> input, output;
    MutableBytes result;  // refers to `input` or `output`
  };

  void on_welcome(uint32_t member) override;
  absl::Status on_prepare(std::shared_ptr<const plan::Plan> plan) override;
  void on_commit(std::shared_ptr<const plan::Plan> plan) override;
  void on_withdrawn(uint32_t epoch) override;
  std::vector<uint64_t> push_pulls() const override;
  void on_ending(const std::vector<uint32_t>& left) override {
    exchanges_.set_ending(left);
    supervisor_.set_ending();
  }
  void on_over(const absl::Status& status) override;
  void on_coordinator_lost() override {
    reports_.on_coordinator_lost(world_->time());
    supervisor_.on_coordinator_lost();
    hold_limit_.on_coordinator_lost();
  }
  void on_coordinator_found() override {
    reports_.on_coordinator_found();
    supervisor_.on_coordinator_found();
    hold_limit_.on_coordinator_found();
  }
  void on_coordinator_gone(const absl::Status& why) override {
    reports_.on_coordinator_gone(why);
    supervisor_.on_coordinator_gone();
    hold_limit_.on_coordinator_gone();
  }

  void open_exchanges(const kernels::Kernels* kernels);
  void take_slice(uint32_t worker, const wire::Header& header, const Buffer& payload);
  void follow(const std::shared_ptr<const plan::Plan>& plan);
  void connect(uint32_t place);
  void supervise();
  void carry_out_supervision();
  void report_losses(const std::vector<uint32_t>& due);
  void begin_round();
  void meet();
  void want(uint32_t tensor);
  void start(uint32_t tensor);
  absl::Status check_sum(uint32_t tensor, uint64_t step) const;
  void finish(const exchange::Done& done);
  void carry_out();
  void fail(const absl::Status& why);

  Nanoseconds pause() { return world_->dice.between(0, world_->scenario.paces[index_]); }

  const uint32_t index_;
  World* const world_;
  Process process_;
  Summer summer_;
  exchange::Exchanges exchanges_;
  const session::Session* session_ = nullptr;     // one of exchanges_
  const executor::Executor* executor_ = nullptr;  // one of exchanges_
  Follower follower_;
  supervision::Supervisor supervisor_;
  supervision::Actions supervised_;
  supervision::Reports reports_;
  supervision::ReportActions told_;
  supervision::HoldLimit hold_limit_;
  std::vector<uint32_t> processes_;  // by member: the process of the connection, or of the attempt to connect
  std::vector<bool> refuses_;        // by worker: its present connection was closed, since this worker had no plan
  bool loses_report_ = false;
  std::shared_ptr<const plan::Plan> plan_;
  std::shared_ptr<const plan::Plan> prepared_;  // neither in force nor withdrawn
  std::vector<Tensor> tensors_;                 // by index in the program
  std::vector<uint32_t> planned_;               // by index in the program: the index in the plan, or UINT32_MAX
  std::vector<uint32_t> program_;               // by index in the plan: the index in the program
  uint32_t round_ = 0;                          // only with Scenario::barrier
  uint32_t in_round_ = 0;                       // push_pulls of this round that are not done
  uint64_t left_ = 0;                           // push_pulls of the whole program that are not done
  bool leaving_ = false;
  std::optional<absl::Duration> done_since_;  // since when all push_pulls are done
  bool over_ = false;
  bool failed_ = false;
  bool lost_ = false;
};

}  // namespace gleaner::sim
