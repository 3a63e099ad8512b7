// Follower: a simulated member's end of the coordinator's stream. It runs the real member::Membership
// (common/member/membership.h) over a stream of Control.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/member/membership.h"
#include "common/plan/plan.h"
#include "tests/protocol_sim/control.h"
#include "tests/protocol_sim/process.h"
#include "tests/protocol_sim/world.h"

namespace gleaner::sim {

class Follower final : private Control::End {
 public:
  class Events {
   public:
    virtual ~Events() = default;
    // Called again if the coordinator repeats its Welcome before the first commit, for example with another number of
    // summers. The member must then forget the plan that it has prepared.
    virtual void on_welcome(uint32_t member) = 0;
    virtual absl::Status on_prepare(std::shared_ptr<const plan::Plan> plan) = 0;
    virtual void on_commit(std::shared_ptr<const plan::Plan> plan) = 0;
    virtual void on_withdrawn(uint32_t /*epoch*/) {}
    // Returns how many push_pulls of each tensor of the plan in force have begun.
    virtual std::vector<uint64_t> push_pulls() const { return {}; }
    virtual void on_ending(const std::vector<uint32_t>& left) = 0;
    virtual void on_coordinator_lost() {}
    virtual void on_coordinator_found() {}
    virtual void on_coordinator_gone(const absl::Status& /*why*/) {}
    // The member has left the job. Aborted: the job continued without it.
    virtual void on_over(const absl::Status& status) = 0;
  };

  Follower(std::string name, coordinator::Identity identity, Process* process, World* world, Control* control,
           Events* events);

  void begin();
  void declare(const std::vector<plan::Tensor>& tensors);
  void fault(uint32_t member, uint32_t epoch, const absl::Status& why);
  void on_owner_follows(uint32_t epoch, bool by_rank);
  void leave();
  void break_stream() { control_->break_stream(stream_); }
  void vanish();  // called when the member's process has crashed

  bool is_leaving() const { return leaving_; }
  bool is_over() const { return over_; }

 private:
  void on_told(Control::Stream stream, const coordinator::Message& message) override;
  void on_broken(Control::Stream stream, const absl::Status& why) override;
  void hear(const coordinator::Message& message);
  void tick();
  void run(const std::function<void()>& what);
  void carry_out();

  void act(const control::MemberMessage& what);
  void act(const member::Connect&);
  void act(const member::Disconnect&);
  void act(const member::Introduce& what);
  void act(const member::Event& event);
  void act(const member::Left& what);
  void act(const member::Stays&) { leaving_ = false; }
  void act(const member::Note& what);

  void handle(const control::Welcome& welcome) { events_->on_welcome(welcome.member); }
  void handle(const control::Prepare& prepare);
  void handle(const control::Commit& commit);
  void handle(const control::Withdraw& withdrawn) { events_->on_withdrawn(withdrawn.epoch); }
  void handle(const control::CountPushPulls& count);
  void handle(const control::Regroup& regroup);
  void handle(const control::Ending& ending) { events_->on_ending(ending.left); }
  void handle(const member::CoordinatorLost&) { events_->on_coordinator_lost(); }
  void handle(const member::CoordinatorGone& gone);
  void handle(const member::CoordinatorFound&) { events_->on_coordinator_found(); }
  // Left reports a failure. Other events do not happen in the simulation, or do not concern a simulated member.
  template <typename Other>
  void handle(const Other&) {}

  const std::string name_;
  const coordinator::Identity identity_;
  Process* const process_;
  World* const world_;
  Control* const control_;
  Events* const events_;
  member::Membership membership_;
  Control::Stream stream_ = 0;
  uint64_t connections_ = 0;
  bool leaving_ = false;
  bool said_leave_ = false;  // Leave was sent on the present connection
  bool over_ = false;
  std::shared_ptr<const plan::Plan> prepared_;
  uint32_t committed_ = 0;  // epoch of the last committed plan
};

}  // namespace gleaner::sim
