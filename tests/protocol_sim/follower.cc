#include "tests/protocol_sim/follower.h"

#include <utility>
#include <variant>

#include "common/base/overloaded.h"

namespace gleaner::sim {
namespace {

// How long a member that leaves waits for a coordinator that is lost for good, as a rank does.
constexpr Nanoseconds kLeaveWithin = 2000 * kMillisecond;

// Simulated jobs are short, so pauses that take seconds in a real job take milliseconds here.
member::Membership::Terms terms_of(const coordinator::Identity& identity) {
  member::Membership::Terms terms;
  terms.is_summer = identity.role == coordinator::Role::kSummer;
  terms.coordinator = "the simulated address";
  terms.timeout = absl::Seconds(12);  // a coordinator gives up earlier
  terms.plan_timeout = absl::Seconds(30);
  terms.pace = {.first_pause = absl::Milliseconds(2),
                .longest_pause = absl::Milliseconds(15),
                .first_pause_away = absl::Milliseconds(2),
                .longest_pause_away = absl::Milliseconds(15),
                .attempt = absl::Milliseconds(500),
                .heartbeat = absl::Milliseconds(5),
                .tick_away = absl::Milliseconds(1)};
  return terms;
}

// Sends a member's messages to the coordinator, as calls of its core.
struct Say {
  Control* control;
  Control::Stream to;

  template <typename Call>
  void say(Call call) const {
    control->say(to, std::move(call));
  }
  void operator()(const control::Heartbeat&) const {
    say([](auto& core, auto stream, auto now, auto&) { core.on_heartbeat(stream, now); });
  }
  void operator()(const control::Declare& what) const {
    say([what](auto& core, auto stream, auto now, auto& actions) {
      core.on_declared(stream, what.tensors, what.operations, now, actions);
    });
  }
  void operator()(const control::Acknowledgement& what) const {
    say([what](auto& core, auto stream, auto now, auto& actions) {
      core.on_acknowledged(stream, what.epoch, now, actions);
    });
  }
  void operator()(const control::Refusal& what) const {
    say([what](auto& core, auto stream, auto now, auto& actions) {
      core.on_refused(stream, what.epoch, what.why, now, actions);
    });
  }
  void operator()(const control::Report&) const { (*this)(control::Heartbeat{}); }
  void operator()(const control::Begun&) const { (*this)(control::Heartbeat{}); }
  void operator()(const control::PushPulls& what) const {
    say([what](auto& core, auto stream, auto now, auto& actions) {
      core.on_push_pulls(stream, what.epoch, what.counts, now, actions);
    });
  }
  void operator()(const control::Fault& what) const {
    say([what](auto& core, auto stream, auto now, auto& actions) {
      core.on_fault(stream, what.member, what.epoch, what.why, now, actions);
    });
  }
  void operator()(const control::Leave& what) const {
    say([what](auto& core, auto stream, auto now, auto& actions) {
      core.on_left(stream, what.status, what.epoch, now, actions);
    });
  }
  void operator()(const control::Recalled& what) const {
    say([what](auto& core, auto stream, auto now, auto& actions) {
      core.on_recalled(stream, *what.plan, now, actions);
    });
  }
};

}  // namespace

Follower::Follower(std::string name, coordinator::Identity identity, Process* process, World* world, Control* control,
                   Events* events)
    : name_(std::move(name)),
      identity_(std::move(identity)),
      process_(process),
      world_(world),
      control_(control),
      events_(events),
      membership_(terms_of(identity_), [world] { return static_cast<double>(world->dice.below(1000)) / 999; }) {}

// Runs `what` when the process runs, and then carries out the actions that follow from it.
void Follower::run(const std::function<void()>& what) {
  process_->run([this, what] {
    if (over_) return;
    what();
    carry_out();
  });
}

void Follower::carry_out() {
  for (std::vector<member::Action> actions = membership_.take(); !actions.empty(); actions = membership_.take()) {
    for (const member::Action& action : actions) std::visit([this](const auto& what) { act(what); }, action);
  }
}

void Follower::begin() {
  run([this] { membership_.begin(world_->time()); });
  tick();
}

void Follower::tick() {
  // An admitted member must send Leave before it ends, or the coordinator declares it lost.
  if (leaving_ && !said_leave_ && membership_.is_admitted()) {
    return world_->report->fail(name_, " was admitted while it leaves, and does not send Leave");
  }
  const absl::Duration interval = membership_.tick_interval();
  if (over_ || world_->over || process_->is_dead() || interval == absl::InfiniteDuration()) return;
  world_->events.after(absl::ToInt64Nanoseconds(interval), [this] {
    run([this] {
      membership_.on_tick(true, world_->time());
      carry_out();
      tick();
    });
  });
}

void Follower::declare(const std::vector<plan::Tensor>& tensors) {
  membership_.declare(tensors, {}, world_->time());
  carry_out();
}

void Follower::fault(uint32_t member, uint32_t epoch, const absl::Status& why) {
  membership_.fault(member, epoch, why, world_->time());
  carry_out();
}

void Follower::on_owner_follows(uint32_t epoch, bool by_rank) {
  membership_.on_owner_follows(epoch, by_rank);
  carry_out();
}

void Follower::leave() {
  leaving_ = true;
  said_leave_ = false;
  membership_.leave(absl::OkStatus(), false, absl::InfiniteDuration(), world_->time());
  carry_out();
  world_->events.after(kLeaveWithin, [this] {
    run([this] {
      if (leaving_ && world_->coordinator_is_gone) act(member::Left{});
    });
  });
}

void Follower::vanish() {
  over_ = true;
  control_->break_stream(stream_);
}

void Follower::on_told(Control::Stream stream, const coordinator::Message& message) {
  run([this, stream, message] {
    if (stream == stream_) hear(message);
  });
}

void Follower::on_broken(Control::Stream stream, const absl::Status& why) {
  run([this, stream, why] {
    if (stream != stream_) return;
    stream_ = 0;
    world_->report->trace(world_->events.now(), name_, ": ", why.message());
    membership_.on_closed(why, world_->time());
  });
}

void Follower::hear(const coordinator::Message& message) {
  const absl::Duration now = world_->time();
  membership_.on_heard(now);
  std::visit(Overloaded{
                 [&](control::Welcome welcome) {
                   welcome.workers = world_->scenario.job.workers;
                   welcome.deadline = world_->scenario.job.deadline;
                   membership_.on_welcome(welcome, now);
                 },
                 [](const coordinator::Rejected&) {},  // Control breaks the stream instead
                 [&](const auto& other) { membership_.on_message(other, now); },
             },
             message);
}

void Follower::act(const control::MemberMessage& what) {
  said_leave_ = said_leave_ || std::holds_alternative<control::Leave>(what);
  if (stream_ != 0) std::visit(Say{control_, stream_}, what);
}

void Follower::act(const member::Connect&) {
  const uint64_t connection = ++connections_;
  said_leave_ = false;
  stream_ = control_->open(this);
  world_->events.after(world_->dice.between(0, kMillisecond), [this, connection] {
    run([this, connection] {
      if (connection != connections_) return;
      if (stream_ != 0) return membership_.on_challenged(world_->time());
      membership_.on_closed(absl::UnavailableError("there is no coordinator"), world_->time());
    });
  });
}

void Follower::act(const member::Disconnect&) {
  ++connections_;
  control_->close(std::exchange(stream_, 0));
}

void Follower::act(const member::Introduce& what) {
  control_->say(stream_,
                [identity = identity_, resume = what.resume](auto& core, auto stream, auto now, auto& actions) {
                  core.on_joined(stream, identity, resume, now, actions);
                });
}

void Follower::act(const member::Event& event) {
  std::visit([this](const auto& each) { handle(each); }, event);
}

void Follower::handle(const control::Prepare& prepare) {
  prepared_ = prepare.plan;
  const absl::Status status = events_->on_prepare(prepare.plan);
  if (status.ok()) return membership_.acknowledge(prepare.plan->epoch, world_->time());
  membership_.refuse(prepare.plan->epoch, status, world_->time());
}

void Follower::handle(const control::Commit& commit) {
  if (commit.epoch <= committed_) {
    return world_->report->fail(name_, " gets Commit of epoch ", commit.epoch, " after ", committed_);
  }
  committed_ = commit.epoch;
  events_->on_commit(prepared_);
}

void Follower::handle(const control::CountPushPulls&) {
  membership_.push_pulls(committed_, events_->push_pulls(), world_->time());
}

void Follower::handle(const control::Regroup&) {
  world_->report->fail(name_, " gets the order to join the next round");
}

void Follower::handle(const member::CoordinatorGone& gone) {
  const bool is_worker = identity_.role == coordinator::Role::kWorker;
  if (world_->coordinator_is_gone) return events_->on_coordinator_gone(gone.why);
  if (is_worker) world_->report->fail(name_, " has lost its coordinator for good: ", gone.why.ToString());
}

void Follower::act(const member::Left& what) {
  if (std::exchange(over_, true)) return;
  control_->close(std::exchange(stream_, 0));
  events_->on_over(what.how);
}

void Follower::act(const member::Note& what) {
  world_->report->trace(world_->events.now(), name_, ": ", what.text, " ", what.reason);
}

}  // namespace gleaner::sim
