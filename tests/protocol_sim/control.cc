#include "tests/protocol_sim/control.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/faults.h"
#include "common/strategy/choice.h"

namespace gleaner::sim {
namespace {

constexpr Nanoseconds kTick = 5 * kMillisecond;
constexpr Nanoseconds kLongestTrip = 2 * kMillisecond;

uint64_t times_modelled() {
  static const faults::Site* const site =
      *std::ranges::find(faults::sites(), absl::string_view("coordinator: strategies are modelled"),
                         [](const faults::Site* each) { return absl::string_view(each->name); });
  return site->reached;
}

}  // namespace

coordinator::Report report_of_message_times() {
  coordinator::Report report;
  report.round_trip_seconds = strategy::kAssumedRoundTripSeconds;
  report.overhead_seconds = 0.1e-6;
  return report;
}

Control::Control(World* world) : world_(world) { begin(); }

void Control::begin() {
  auto server = std::make_unique<Server>();
  const bool first = servers_.empty();
  std::string session = world_->scenario.single_coordinator ? "" : absl::StrCat("session ", servers_.size());
  coordinator::Origin origin{std::move(session), !first, 0, servers_.size() + 1};
  server->core = std::make_unique<Core>(world_->scenario.job, world_->time(), std::move(origin));
  servers_.push_back(std::move(server));
  tick(servers_.size() - 1);
}

void Control::tick(size_t server) {
  if (servers_[server]->dead || world_->over) return;
  act(server, [this](Core& core, coordinator::Actions& actions) { core.on_tick(world_->time(), actions); });
  world_->events.after(kTick, [this, server] { tick(server); });
}

void Control::act(size_t server, const std::function<void(Core&, coordinator::Actions&)>& what) {
  coordinator::Actions actions;
  Core& core = *servers_[server]->core;
  const uint64_t modelled = times_modelled();
  what(core, actions);
  if (core.planning().awaits_measurements()) report_measured_times(core, actions);
  const std::string name = absl::StrCat("coordinator ", server, ": ");
  for (const std::string& note : actions.notes) world_->report->trace(world_->events.now(), name, note);
  for (const std::string& warning : actions.warnings) world_->report->trace(world_->events.now(), name, warning);
  if (core.plan().epoch < servers_[server]->told_epoch) world_->report->fail(name, "the epoch decreased");
  servers_[server]->told_epoch = core.plan().epoch;
  if (times_modelled() > modelled) world_->report->fail(name, "an event waited until strategies were modelled");
  if (actions.model != nullptr) model(server, std::move(actions.model));
  for (const coordinator::Send& send : actions.sends) {
    tell(send.stream, send.message);
    repeat_welcome(send);
  }
}

// Ranks measure the times of messages at once, so that models are there before tensors are declared, as in most jobs.
void Control::report_measured_times(Core& core, coordinator::Actions& actions) const {
  const coordinator::Report report = report_of_message_times();
  for (uint32_t rank = 0; rank < core.roster().ranks(); ++rank) {
    core.on_report(core.roster()[rank].stream, report, world_->time(), actions);
  }
}

// Carries out a request beside the core, whose events go on meanwhile.
void Control::model(size_t server, coordinator::ModelRequest request) {
  const Nanoseconds time = world_->dice.between(0, world_->dice.chance(0.05) ? 100 * kMillisecond : kMillisecond / 5);
  world_->events.after(time, [this, server, request = std::move(request)] {
    if (servers_[server]->dead || world_->over) return;
    auto models = coordinator::Modelling::carry_out(*request);
    act(server, [&](Core& core, coordinator::Actions& actions) {
      core.on_modelled(request, std::move(models), world_->time(), actions);
    });
  });
}

void Control::repeat_welcome(const coordinator::Send& send) {
  const auto* welcome = std::get_if<coordinator::Welcome>(&send.message);
  const auto pipe = pipes_.find(send.stream);
  if (welcome == nullptr || pipe == pipes_.end()) return;
  pipe->second.welcome = *welcome;
  if (!world_->dice.chance(world_->scenario.repeated_welcome_chance)) return;
  world_->events.after(world_->dice.between(0, 10 * kMillisecond), [this, stream = send.stream] {
    const auto found = pipes_.find(stream);
    if (found == pipes_.end() || found->second.broken) return;
    ++world_->report->coverage.repeated_welcomes;
    coordinator::Welcome again = found->second.welcome;
    ++again.summers;
    tell(stream, again);
  });
}

Control::Stream Control::open(End* end) {
  if (!there_) return 0;
  // A coordinator that was replaced and still lives may accept the stream.
  const size_t newest = servers_.size() - 1;
  const bool stale = newest > 0 && !servers_[newest - 1]->dead && world_->dice.chance(0.2);
  pipes_[next_stream_] = {.end = end, .server = stale ? newest - 1 : newest};
  return next_stream_++;
}

void Control::close(Stream stream) {
  const auto found = pipes_.find(stream);
  if (found == pipes_.end()) return;
  found->second.end = nullptr;
  break_stream(stream);
}

void Control::say(Stream stream, Say what) {
  const auto found = pipes_.find(stream);
  if (found == pipes_.end() || found->second.broken) return;
  world_->events.after(delay(found->second.last_said), [this, stream, what = std::move(what)] {
    const auto pipe = pipes_.find(stream);
    if (pipe == pipes_.end() || pipe->second.broken || servers_[pipe->second.server]->dead) return;
    act(pipe->second.server,
        [&](Core& core, coordinator::Actions& actions) { what(core, stream, world_->time(), actions); });
  });
}

void Control::tell(Stream stream, const coordinator::Message& message) {
  const auto found = pipes_.find(stream);
  if (found == pipes_.end() || found->second.broken) return;
  world_->events.after(delay(found->second.last_told), [this, stream, message] {
    const auto pipe = pipes_.find(stream);
    if (pipe == pipes_.end() || pipe->second.broken || pipe->second.end == nullptr) return;
    End* const end = pipe->second.end;
    if (const auto* rejected = std::get_if<coordinator::Rejected>(&message)) {
      pipe->second.end = nullptr;
      pipe->second.broken = true;
      return end->on_broken(stream, rejected->why);
    }
    end->on_told(stream, message);
  });
}

void Control::break_stream(Stream stream) {
  const auto found = pipes_.find(stream);
  if (found == pipes_.end() || found->second.broken) return;
  found->second.broken = true;
  const absl::Status why = absl::UnavailableError("the stream broke");
  const size_t server = found->second.server;
  if (End* const end = std::exchange(found->second.end, nullptr); end != nullptr) {
    world_->events.after(world_->dice.between(0, kLongestTrip), [end, stream, why] { end->on_broken(stream, why); });
  }
  // The coordinator may notice the break later than the member, which may have joined again by then.
  const Nanoseconds latest = world_->dice.chance(0.4) ? 20 * kMillisecond : kLongestTrip;
  world_->events.after(world_->dice.between(0, latest), [this, server, stream, why] {
    if (servers_[server]->dead) return;
    act(server, [&](Core& core, coordinator::Actions& actions) { core.on_disconnected(stream, why, actions); });
  });
}

void Control::order(const std::function<void(Core&, absl::Duration, coordinator::Actions&)>& what) {
  if (!there_) return;
  act(servers_.size() - 1, [&](Core& core, coordinator::Actions& actions) { what(core, world_->time(), actions); });
}

void Control::lose() {
  world_->report->trace(world_->events.now(), "the coordinator is lost");
  there_ = false;
  servers_.back()->dead = true;
  for (auto& [stream, pipe] : pipes_) {
    if (pipe.server == servers_.size() - 1) break_stream(stream);
  }
}

void Control::die() {
  if (!there_) return;
  ++world_->report->coverage.coordinators_gone;
  world_->coordinator_is_gone = true;
  for (const auto& server : servers_) server->dead = true;
  for (auto& [stream, pipe] : pipes_) break_stream(stream);
  lose();
}

void Control::forget() {
  if (!there_) return;
  ++world_->report->coverage.coordinators_lost;
  lose();
  ++world_->pending;
  world_->events.after(world_->dice.between(0, 50 * kMillisecond), [this] {
    --world_->pending;
    there_ = true;
    begin();
  });
}

void Control::usurp() {
  if (!there_) return;
  ++world_->report->coverage.usurped;
  world_->report->trace(world_->events.now(), "another coordinator takes over");
  const size_t old = servers_.size() - 1;
  begin();
  for (const auto& [stream, pipe] : pipes_) {
    if (pipe.server != old || pipe.broken) continue;
    ++world_->pending;
    world_->events.after(world_->dice.between(0, 40 * kMillisecond), [this, stream = stream] {
      --world_->pending;
      break_stream(stream);
    });
  }
  ++world_->pending;
  world_->events.after(world_->dice.between(60, 300) * kMillisecond, [this, old] {
    --world_->pending;
    servers_[old]->dead = true;
    for (const auto& [stream, pipe] : pipes_) {
      if (pipe.server == old) break_stream(stream);
    }
  });
}

// Returns the delay until a message arrives, and updates `last`, the arrival of the message before it: messages keep
// their order.
Nanoseconds Control::delay(Nanoseconds& last) {
  Nanoseconds delay = world_->dice.between(0, kLongestTrip);
  if (world_->dice.chance(0.05)) delay += world_->dice.between(0, 10 * kMillisecond);
  delay = std::max(delay, last - world_->events.now());
  last = world_->events.now() + delay;
  return delay;
}

}  // namespace gleaner::sim
