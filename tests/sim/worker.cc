#include "tests/sim/worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::sim {
namespace {

constexpr uint32_t kUnplanned = UINT32_MAX;
constexpr Nanoseconds kPatience = 15 * kMillisecond;  // with a summer out of reach from which results are due

session::Options session_options(uint32_t index, const Scenario& scenario) {
  return {.job = kJob,
          .worker = index,
          .window_bytes = scenario.window_bytes,
          .stall_after = absl::Nanoseconds(scenario.stall_after),
          .defer_retry = absl::Nanoseconds(scenario.defer_retry)};
}

}  // namespace

Worker::Worker(uint32_t index, const kernels::Kernels* kernels, World* world, Control* control)
    : index_(index),
      world_(world),
      process_(&world->events),
      summer_(index, kernels, world),
      session_(session_options(index, world->scenario), &world->pool),
      follower_(absl::StrCat("worker ", index),
                {.role = coordinator::Role::kWorker, .index = index, .address = address_of(index)}, &process_, world,
                control, this) {
  for (const plan::Tensor& tensor : world->scenario.tensors) {
    tensors_.emplace_back();
    tensors_.back().input.resize(tensor.bytes());
    tensors_.back().output.resize(tensor.bytes());
  }
  planned_.resize(tensors_.size(), kUnplanned);
  left_ = world->scenario.push_pulls();
}

void Worker::begin() {
  follower_.begin();
  if (world_->scenario.barrier) return begin_round();
  for (uint32_t i = 0; i < tensors_.size() - (world_->scenario.meets ? 1 : 0); ++i) {
    world_->events.after(pause(), [this, i] { process_.run([this, i] { want(i); }); });
  }
}

// --- the coordinator

void Worker::on_welcome(uint32_t member) {
  if (member != index_) return world_->report->fail("worker ", index_, " is member ", member);
  summer_.be(member);
}

absl::Status Worker::on_prepare(std::shared_ptr<const plan::Plan> plan) { return summer_.prepare(std::move(plan)); }

void Worker::on_commit(std::shared_ptr<const plan::Plan> plan) {
  leaving_ = false;
  summer_.commit(plan->epoch);
  follow(*plan);
  plan_ = plan;
  for (auto id = static_cast<uint32_t>(program_.size()); id < plan->tensors.size(); ++id) {
    const auto& all = world_->scenario.tensors;
    const auto found = std::ranges::find(all, plan->tensors[id].name, &plan::Tensor::name);
    program_.push_back(static_cast<uint32_t>(found - all.begin()));
    planned_[program_.back()] = id;
  }
  if (const absl::Status status = session_.apply(plan, world_->time(), actions_); !status.ok()) {
    return world_->report->fail("worker ", index_, " can't apply: ", status.ToString());
  }
  carry_out();
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].wanted && planned_[i] != kUnplanned) start(i);
  }
}

void Worker::on_over(const absl::Status& status) {
  over_ = true;
  if (!status.ok()) world_->report->fail("worker ", index_, " is told that the job failed: ", status.ToString());
}

bool Worker::stop() {
  if (process_.is_dead()) return false;
  for (const Place& place : places_) {
    if (place.up) world_->network.disconnect(index_, place.process);
  }
  process_.crash();
  return true;
}

// --- connections

void Worker::follow(const plan::Plan& plan) {
  places_.resize(std::max(places_.size(), plan.members.size()));
  for (uint32_t i = 0; i < places_.size(); ++i) {
    const plan::Member what = i < plan.members.size() ? plan.members[i] : plan::Member();
    Place& place = places_[i];
    if (place.since == what.since && place.here == what.is_here()) continue;
    if (place.up) {
      world_->network.disconnect(index_, place.process);
      session_.on_disconnected(i);
    }
    place = {.process = what.is_here() ? number_of(what.address) : UINT32_MAX,
             .since = what.since,
             .here = what.is_here(),
             .down_since = world_->events.now()};
  }
}

void Worker::connect(uint32_t i) {
  Place& place = places_[i];
  place.connecting = true;
  const uint32_t process = place.process;
  world_->events.after(world_->dice.between(0, 3 * kMillisecond), [this, i, process] {
    process_.run([this, i, process] {
      Place& now = places_[i];
      if (now.process != process || !now.connecting) return;
      now.connecting = false;
      if (!world_->reachable(index_, process)) return;
      world_->report->trace(world_->events.now(), "worker ", index_, " connected to member ", i, ", process ", process);
      now.up = true;
      now.reported = false;
      world_->network.connect(index_, process);
      session_.on_connected(i, world_->time(), actions_);
      carry_out();
    });
  });
}

void Worker::lose(uint32_t process) {
  process_.run([this, process] {
    for (uint32_t i = 0; i < places_.size(); ++i) {
      if (places_[i].process != process || !places_[i].up) continue;
      world_->report->trace(world_->events.now(), "worker ", index_, " lost member ", i);
      places_[i].up = false;
      places_[i].down_since = world_->events.now();
      world_->network.disconnect(index_, process);
      session_.on_disconnected(i);
    }
  });
}

// Connects again, and says which summer it waits for in vain.
void Worker::tend() {
  const std::vector<uint32_t> waiting = session_.waiting_for();
  for (uint32_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!place.here || place.up) continue;
    if (!place.connecting) connect(i);
    const bool due = std::ranges::find(waiting, i) != waiting.end();
    if (!due) place.down_since = world_->events.now();
    if (i < world_->scenario.job.workers || place.reported || world_->events.now() - place.down_since < kPatience) {
      continue;
    }
    place.reported = true;
    follower_.fault(i, absl::UnavailableError("out of reach"));
  }
}

// --- the program

// A round in which nothing happens is over at once.
void Worker::begin_round() {
  const Scenario& scenario = world_->scenario;
  std::vector<uint32_t> order;
  for (; order.empty() && left_ > 0; ++round_) {
    for (uint32_t i = 0; i < tensors_.size(); ++i) {
      if (scenario.joins_at[i] <= round_ && round_ < scenario.joins_at[i] + scenario.steps) order.push_back(i);
    }
  }
  in_round_ = static_cast<uint32_t>(order.size());
  world_->dice.shuffle(order);
  Nanoseconds time = 0;
  for (uint32_t tensor : order) {
    world_->events.after(time += pause(), [this, tensor] { process_.run([this, tensor] { want(tensor); }); });
  }
}

void Worker::want(uint32_t tensor) {
  tensors_[tensor].wanted = true;
  if (planned_[tensor] != kUnplanned) return start(tensor);
  if (!std::exchange(tensors_[tensor].declared, true)) follower_.declare({world_->scenario.tensors[tensor]});
}

void Worker::start(uint32_t id) {
  const Scenario& scenario = world_->scenario;
  Tensor& tensor = tensors_[id];
  tensor.wanted = false;
  const plan::Tensor& what = scenario.tensors[id];
  std::ranges::copy(contribution(scenario.seed, what, id, tensor.step, index_), tensor.input.begin());
  const bool in_place = world_->dice.chance(scenario.in_place_chance);
  if (in_place) ++world_->report->coverage.in_place;
  tensor.result = in_place ? tensor.input : tensor.output;
  world_->report->trace(world_->events.now(), "worker ", index_, " starts tensor ", id, " step ", tensor.step);
  session::Request request{.id = uint64_t{id} << 32 | tensor.step,
                           .tensor = planned_[id],
                           .op = scenario.op_of(id, tensor.step),
                           .input = Buffer::borrow(tensor.input),
                           .output = tensor.result};
  if (const absl::Status status = session_.start(std::move(request), world_->time(), actions_); !status.ok()) {
    return world_->report->fail("worker ", index_, " can't start: ", status.ToString());
  }
  carry_out();
}

void Worker::finish(const session::Done& done) {
  const auto id = static_cast<uint32_t>(done.id >> 32);
  const uint64_t step = done.id & 0xffffffff;
  Tensor& tensor = tensors_[id];
  world_->report->trace(world_->events.now(), "worker ", index_, " has tensor ", id, " step ", step);
  if (!done.status.ok() || step != tensor.step) {
    return world_->report->fail("worker ", index_, " tensor ", id, " expected step ", tensor.step, ", got ", step, ": ",
                                done.status.ToString());
  }
  if (world_->scenario.tensors[id].accumulates) {
    world_->accumulated.check_output(*plan_, planned_[id], id, index_, step, tensor.result);
  } else if (!std::ranges::equal(tensor.result, world_->expected.of(id, step))) {
    return world_->report->fail("worker ", index_, " got wrong bits for tensor ", id, " step ", step);
  }
  // From now on the memory is the program's: whoever still reads it will notice.
  std::ranges::fill(tensor.input, kFreeMemory);
  std::ranges::fill(tensor.output, kFreeMemory);
  ++tensor.step;
  --left_;
  if (world_->scenario.meets && left_ <= 1) {
    const auto meeting = static_cast<uint32_t>(tensors_.size() - 1);
    if (left_ == 1) {
      world_->events.after(pause(), [this, meeting] { process_.run([this, meeting] { want(meeting); }); });
    }
  } else if (!world_->scenario.barrier) {
    if (tensor.step < world_->scenario.steps) {
      world_->events.after(pause(), [this, id] { process_.run([this, id] { want(id); }); });
    }
  } else if (--in_round_ == 0) {
    begin_round();
  }
}

// --- frames and time

void Worker::deliver_answer(uint32_t process, const wire::Header& header, const Buffer& payload) {
  process_.run([this, process, header, payload] {
    const auto place = std::ranges::find(places_, process, &Place::process);
    if (place == places_.end() || !place->up) return;
    const bool accumulated = header.type == wire::FrameType::kResult && header.op == ReduceOp::kAccumulate;
    if (accumulated) world_->accumulated.hear(*plan_, program_[header.tensor], index_, header, payload);
    const absl::Status status =
        session_.on_frame(static_cast<uint32_t>(place - places_.begin()), header, payload, world_->time(), actions_);
    if (!status.ok()) world_->report->fail("worker ", index_, ": ", status.ToString());
    carry_out();
  });
}

void Worker::deliver_to_summer(uint32_t worker, const wire::Header& header, const Buffer& payload) {
  process_.run([this, worker, header, payload] { summer_.deliver(worker, header, payload); });
}

void Worker::tick() {
  process_.run([this] {
    session_.on_tick(world_->time(), actions_);
    carry_out();
    tend();
    const bool done = left_ == 0 && !leaving_ && session_.idle();
    if (!done) done_since_.reset();
    if (!done) return;
    if (!done_since_.has_value()) done_since_ = world_->time();
    // The last acknowledgement may be lost with a worker that has left: nobody waits for it for ever.
    if (!summer_.idle() && world_->time() - *done_since_ < world_->scenario.job.deadline) return;
    leaving_ = true;
    world_->report->trace(world_->events.now(), "worker ", index_, " leaves");
    follower_.leave();
  });
}

void Worker::carry_out() {
  for (session::Send& send : actions_.sends) {
    const Place& place = places_[send.owner];
    if (!place.up) continue;
    world_->network.send(Direction::kToOwner, index_, place.process, send.header, std::move(send.payload));
  }
  actions_.sends.clear();
  for (const session::Done& done : std::exchange(actions_.done, {})) finish(done);
}

std::string Worker::describe() const {
  return absl::StrCat("worker ", index_, ": ", left_, " push_pulls left, waits for members ",
                      absl::StrJoin(session_.waiting_for(), ","), session_.idle() ? ", idle" : "",
                      summer_.idle() ? "" : ", its summer is not", leaving_ ? ", leaves" : "", over_ ? ", over" : "");
}

void Worker::check_end() const {
  const session::Counters& counters = session_.counters();
  if (counters.outstanding_bytes != 0) {
    world_->report->fail("worker ", index_, " has ", counters.outstanding_bytes, " bytes outstanding");
  }
  Coverage& coverage = world_->report->coverage;
  coverage.repeated += counters.repeated_pushes;
  coverage.late_results += counters.duplicate_results;
  coverage.stalls += counters.stalls;
  coverage.moved += counters.moved;
  summer_.count();
}

}  // namespace gleaner::sim
