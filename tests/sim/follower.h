// A member's end of the coordinator's stream, as common/member has it without threads and gRPC: joins, follows plans,
// looks for the coordinator when it is lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "tests/sim/control.h"
#include "tests/sim/process.h"
#include "tests/sim/world.h"

namespace gleaner::sim {

class Follower final : private Control::End {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // Again when the job turns out otherwise before the first commit: forget what was prepared.
    virtual void on_welcome(uint32_t member) = 0;
    virtual absl::Status on_prepare(std::shared_ptr<const plan::Plan> plan) = 0;
    virtual void on_commit(std::shared_ptr<const plan::Plan> plan) = 0;
    virtual void on_ending() = 0;
    virtual void on_coordinator_lost() {}
    virtual void on_coordinator_found() {}
    // Aborted: the job has gone on without it.
    virtual void on_over(const absl::Status& status) = 0;
  };

  Follower(std::string name, coordinator::Identity identity, Process* process, World* world, Control* control,
           Events* events);

  void begin() { connect(); }
  void declare(std::vector<plan::Tensor> tensors);
  void fault(uint32_t member, const absl::Status& why);
  void leave();
  void break_stream() { control_->break_stream(stream_); }
  void vanish();  // its process has crashed

  bool is_over() const { return over_; }

 private:
  void on_told(const coordinator::Message& message) override;
  void on_broken(const absl::Status& why) override;
  void hear(const coordinator::Message& message);
  void connect();
  void retry();
  void on_welcome(const coordinator::Welcome& welcome);
  void on_prepare(std::shared_ptr<const plan::Plan> plan);
  void on_commit(uint32_t epoch);
  void finish(const absl::Status& status);
  void heartbeat(Control::Stream stream);
  bool has_begun() const { return committed_ != nullptr; }
  bool is_summer() const { return identity_.role == coordinator::Role::kSummer; }

  const std::string name_;
  const coordinator::Identity identity_;
  Process* const process_;
  World* const world_;
  Control* const control_;
  Events* const events_;
  Control::Stream stream_ = 0;
  bool in_ = false;
  bool over_ = false;
  bool leaving_ = false;
  std::optional<uint32_t> member_;
  std::string session_;
  uint64_t term_ = 0;
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> committed_;
  std::vector<plan::Tensor> unplanned_;
};

}  // namespace gleaner::sim
