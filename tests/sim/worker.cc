#include "tests/sim/worker.h"

#include <algorithm>
#include <utility>

namespace gleaner::sim {
namespace {

session::Options session_options(uint32_t index, const Scenario& scenario) {
  return {.job = kJob,
          .worker = index,
          .window_bytes = scenario.window_bytes,
          .stall_after = absl::Nanoseconds(scenario.stall_after),
          .defer_retry = absl::Nanoseconds(scenario.defer_retry)};
}

}  // namespace

Worker::Worker(uint32_t index, World* world)
    : index_(index), world_(world), session_(session_options(index, world->scenario), &world->pool) {
  for (const plan::Tensor& tensor : world->scenario.last_plan().tensors) {
    tensors_.emplace_back();
    tensors_.back().input.resize(tensor.bytes());
    tensors_.back().output.resize(tensor.bytes());
  }
  left_ = tensors_.size() * world->scenario.steps;
  if (world->scenario.barrier) {
    begin_round();
  } else {
    for (uint32_t i = 0; i < tensors_.size(); ++i) world->events.after(pause(), [this, i] { want(i); });
  }
}

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
  for (uint32_t tensor : order) world_->events.after(time += pause(), [this, tensor] { want(tensor); });
}

void Worker::want(uint32_t tensor) {
  tensors_[tensor].wanted = true;
  if (tensor < known_) start(tensor);
}

void Worker::apply(std::shared_ptr<const plan::Plan> plan) {
  const size_t from = std::exchange(known_, plan->tensors.size());
  if (const absl::Status status = session_.apply(std::move(plan)); !status.ok()) {
    return world_->report->fail("worker ", index_, " can't apply: ", status.ToString());
  }
  for (size_t i = from; i < known_; ++i) {
    if (tensors_[i].wanted) start(static_cast<uint32_t>(i));
  }
}

void Worker::start(uint32_t id) {
  const Scenario& scenario = world_->scenario;
  Tensor& tensor = tensors_[id];
  tensor.wanted = false;
  const plan::Tensor& what = scenario.last_plan().tensors[id];
  std::ranges::copy(contribution(scenario.seed, what, id, tensor.step, index_), tensor.input.begin());
  const bool in_place = world_->dice.chance(scenario.in_place_chance);
  if (in_place) ++world_->report->coverage.in_place;
  tensor.result = in_place ? tensor.input : tensor.output;
  world_->report->trace(world_->events.now(), "worker ", index_, " starts tensor ", id, " step ", tensor.step);
  session::Request request{.id = uint64_t{id} << 32 | tensor.step,
                           .tensor = id,
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
  if (!std::ranges::equal(tensor.result, world_->expected.of(id, step))) {
    return world_->report->fail("worker ", index_, " got wrong bits for tensor ", id, " step ", step);
  }
  // From now on the memory is the program's: whoever still reads it will notice.
  std::ranges::fill(tensor.input, kFreeMemory);
  std::ranges::fill(tensor.output, kFreeMemory);
  ++tensor.step;
  --left_;
  if (!world_->scenario.barrier) {
    if (tensor.step < world_->scenario.steps) world_->events.after(pause(), [this, id] { want(id); });
  } else if (--in_round_ == 0) {
    begin_round();
  }
}

void Worker::connected(uint32_t owner) {
  session_.on_connected(owner, world_->time(), actions_);
  carry_out();
}

void Worker::disconnected(uint32_t owner) { session_.on_disconnected(owner); }

void Worker::deliver(uint32_t owner, const wire::Header& header, Buffer payload) {
  const absl::Status status = session_.on_frame(owner, header, std::move(payload), world_->time(), actions_);
  if (!status.ok()) world_->report->fail("worker ", index_, ": ", status.ToString());
  carry_out();
}

void Worker::tick() {
  session_.on_tick(world_->time(), actions_);
  carry_out();
}

void Worker::carry_out() {
  const session::Counters& counters = session_.counters();
  const uint64_t most = world_->scenario.window_bytes + world_->largest_partition() - 1;  // rounded up to whole ones
  if (counters.stalls == 0 && counters.window_used_bytes > most) {
    world_->report->fail("worker ", index_, " has ", counters.window_used_bytes, " bytes on its links, the window is ",
                         world_->scenario.window_bytes);
  }
  for (session::Send& send : actions_.sends) {
    world_->network.send(Direction::kToOwner, index_, send.owner, send.header, std::move(send.payload));
  }
  actions_.sends.clear();
  for (const session::Done& done : actions_.done) finish(done);
  actions_.done.clear();
}

}  // namespace gleaner::sim
