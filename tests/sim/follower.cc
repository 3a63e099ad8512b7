#include "tests/sim/follower.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/proto/plan_codec.h"

namespace gleaner::sim {
namespace {

constexpr Nanoseconds kHeartbeat = 5 * kMillisecond;

}  // namespace

Follower::Follower(std::string name, coordinator::Identity identity, Process* process, World* world, Control* control,
                   Events* events)
    : name_(std::move(name)),
      identity_(std::move(identity)),
      process_(process),
      world_(world),
      control_(control),
      events_(events) {}

void Follower::connect() {
  if (over_ || world_->over || process_->is_dead()) return;
  stream_ = control_->open(this);
  if (stream_ == 0) return retry();
  std::optional<coordinator::Resume> resume;
  if (!session_.empty() && (committed_ != nullptr || prepared_ != nullptr)) {
    resume.emplace();
    resume->session = session_;
    resume->member = *member_;
    resume->term = term_;
    if (prepared_ != nullptr) resume->prepared = prepared_->epoch;
    if (committed_ != nullptr) {
      resume->committed = committed_->epoch;
      resume->plan_digest = proto::digest(*committed_);
    }
  }
  control_->say(stream_, [identity = identity_, resume](auto& core, auto stream, auto now, auto& actions) {
    core.on_joined(stream, identity, resume, now, actions);
  });
}

void Follower::retry() {
  world_->events.after(world_->dice.between(1, 15) * kMillisecond, [this] { process_->run([this] { connect(); }); });
}

void Follower::heartbeat(Control::Stream stream) {
  if (over_ || stream != stream_ || process_->is_dead() || world_->over) return;
  control_->say(stream, [](auto& core, auto from, auto now, auto&) { core.on_heartbeat(from, now); });
  world_->events.after(kHeartbeat, [this, stream] { process_->run([this, stream] { heartbeat(stream); }); });
}

void Follower::declare(std::vector<plan::Tensor> tensors) {
  unplanned_.insert(unplanned_.end(), tensors.begin(), tensors.end());
  if (!in_) return;
  control_->say(stream_, [tensors = std::move(tensors)](auto& core, auto stream, auto now, auto& actions) {
    core.on_declared(stream, tensors, {}, now, actions);
  });
}

void Follower::fault(uint32_t member, const absl::Status& why) {
  if (!in_) return;
  control_->say(stream_, [member, why](auto& core, auto stream, auto now, auto& actions) {
    core.on_fault(stream, member, why, now, actions);
  });
}

void Follower::leave() {
  leaving_ = true;
  if (!in_) return;
  const uint32_t epoch = committed_ == nullptr ? 0 : committed_->epoch;
  control_->say(stream_, [epoch](auto& core, auto stream, auto now, auto& actions) {
    core.on_left(stream, absl::OkStatus(), epoch, now, actions);
  });
}

void Follower::vanish() {
  over_ = true;
  control_->break_stream(stream_);
}

void Follower::on_told(const coordinator::Message& message) {
  process_->run([this, message] { hear(message); });
}

void Follower::hear(const coordinator::Message& message) {
  if (over_) return;
  if (const auto* welcome = std::get_if<coordinator::Welcome>(&message)) return on_welcome(*welcome);
  if (!in_) return;
  if (std::holds_alternative<coordinator::Recall>(message)) {
    if (committed_ == nullptr) return;
    control_->say(stream_, [plan = *committed_](auto& core, auto stream, auto now, auto& actions) {
      core.on_recalled(stream, plan, now, actions);
    });
  } else if (const auto* prepare = std::get_if<coordinator::Prepare>(&message)) {
    on_prepare(prepare->plan);
  } else if (const auto* commit = std::get_if<coordinator::Commit>(&message)) {
    on_commit(commit->epoch);
  } else if (std::holds_alternative<coordinator::Ending>(message)) {
    events_->on_ending();
  } else if (const auto* failed = std::get_if<coordinator::Failed>(&message)) {
    finish(failed->status);
  } else if (std::holds_alternative<coordinator::Finished>(message) ||
             std::holds_alternative<coordinator::Goodbye>(message)) {
    finish(absl::OkStatus());
  }
}

void Follower::on_welcome(const coordinator::Welcome& welcome) {
  in_ = true;
  if (has_begun() && (welcome.session != session_ || welcome.member != *member_)) {
    return world_->report->fail(name_, " is welcomed as another");
  }
  if (has_begun()) events_->on_coordinator_found();
  session_ = welcome.session;
  term_ = std::max(term_, welcome.term);
  if (!has_begun() && member_ != welcome.member) {
    prepared_ = nullptr;
    member_ = welcome.member;
    events_->on_welcome(welcome.member);
  }
  if (!unplanned_.empty()) declare(std::exchange(unplanned_, {}));
  if (leaving_) leave();
  heartbeat(stream_);
}

void Follower::on_prepare(std::shared_ptr<const plan::Plan> plan) {
  const uint32_t epoch = plan->epoch;
  prepared_ = plan;
  const absl::Status status = events_->on_prepare(std::move(plan));
  control_->say(stream_, [epoch, status](auto& core, auto stream, auto now, auto& actions) {
    if (status.ok()) return core.on_acknowledged(stream, epoch, now, actions);
    core.on_refused(stream, epoch, status, now, actions);
  });
}

void Follower::on_commit(uint32_t epoch) {
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return world_->report->fail(name_, " is told to commit epoch ", epoch, ", which was not prepared");
  }
  if (committed_ != nullptr && epoch <= committed_->epoch) {
    return world_->report->fail(name_, " is told to commit epoch ", epoch, " after ", committed_->epoch);
  }
  committed_ = std::exchange(prepared_, nullptr);
  std::erase_if(unplanned_, [this](const plan::Tensor& tensor) {
    return std::ranges::any_of(committed_->tensors, [&](const auto& known) { return known.name == tensor.name; });
  });
  if (!is_summer()) leaving_ = false;
  events_->on_commit(committed_);
}

void Follower::on_broken(const absl::Status& why) {
  process_->run([this, why] {
    if (over_) return;
    if (std::exchange(in_, false) && has_begun()) events_->on_coordinator_lost();
    stream_ = 0;
    world_->report->trace(world_->events.now(), name_, ": ", why.message());
    const bool for_good = absl::IsFailedPrecondition(why) || absl::IsInvalidArgument(why);
    if (for_good && !is_summer()) return world_->report->fail(name_, " is refused: ", why.ToString());
    if (for_good || absl::IsAborted(why)) return finish(why);
    retry();
  });
}

void Follower::finish(const absl::Status& status) {
  over_ = true;
  control_->close(stream_);
  events_->on_over(status);
}

}  // namespace gleaner::sim
