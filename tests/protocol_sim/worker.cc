#include "tests/protocol_sim/worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "tests/protocol_sim/oracle.h"

namespace gleaner::sim {
namespace {

constexpr uint32_t kUnplanned = UINT32_MAX;

// Simulated jobs are short, so timeouts of seconds in a real job are milliseconds here.
supervision::Options supervisor_options(const Scenario& scenario) {
  return {.deadline = scenario.job.deadline,
          .plan_timeout = scenario.job.start_timeout,
          .summer_timeout = absl::Milliseconds(15),
          .idle_timeout = absl::Milliseconds(60),
          .first_pause = absl::Milliseconds(1),
          .longest_pause = absl::Milliseconds(8)};
}

supervision::Reports::Options report_options(const Scenario& scenario) {
  return {.deadline = scenario.job.deadline,
          .plan_timeout = scenario.job.start_timeout,
          .verdict_timeout = scenario.job.deadline * 2,
          .repeat_every = absl::Milliseconds(20)};
}

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
      follower_(absl::StrCat("worker ", index),
                {.role = coordinator::Role::kWorker,
                 .index = world->scenario.index_of_worker(index),
                 .address = address_of(index)},
                &process_, world, control, this),
      supervisor_(supervisor_options(world->scenario)),
      reports_(report_options(world->scenario)),
      hold_limit_(world->scenario.job.deadline, world->scenario.job.start_timeout) {
  open_exchanges(kernels);
  for (const plan::Tensor& tensor : world->scenario.tensors) {
    tensors_.emplace_back();
    tensors_.back().input.resize(tensor.bytes());
    tensors_.back().output.resize(tensor.bytes());
  }
  planned_.resize(tensors_.size(), kUnplanned);
  refuses_.resize(world->scenario.job.workers);
  left_ = world->scenario.push_pulls(index);
}

void Worker::may_cause_errors(Nanoseconds until) {
  // Plans name a worker by its number, and the coordinator by its index.
  const uint32_t index = world_->scenario.index_of_worker(index_);
  world_->causes.add(name(), until);
  if (index != index_) world_->causes.add(absl::StrCat("worker ", index), until);
}

// Composes the exchanges as NetworkStage does (comm-lib/network/network_stage.cc).
void Worker::open_exchanges(const kernels::Kernels* kernels) {
  using SummedBy = exchange::Exchanges::SummedBy;
  auto session = std::make_unique<session::Session>(session_options(index_, world_->scenario), &world_->pool);
  session_ = session.get();
  exchanges_.add(SummedBy::kOwners, std::move(session));
  const executor::Options options{kJob, index_, world_->scenario.window_bytes};
  auto executor = std::make_unique<executor::Executor>(options, &world_->pool, kernels);
  executor_ = executor.get();
  exchanges_.add(SummedBy::kWorkers, std::move(executor));
}

void Worker::begin() {
  const Scenario& scenario = world_->scenario;
  follower_.begin();
  if (scenario.meets && left_ == 1) return meet();
  if (scenario.barrier) return begin_round();
  for (uint32_t i = 0; i < tensors_.size() - (scenario.meets ? 1 : 0); ++i) {
    if (!scenario.tensors[i].has(index_)) continue;
    world_->events.after(pause(), [this, i] { process_.run([this, i] { want(i); }); });
  }
}

void Worker::on_welcome(uint32_t member) {
  if (member != index_) return world_->report->fail("worker ", index_, " is member ", member);
  summer_.be(member);
}

absl::Status Worker::on_prepare(std::shared_ptr<const plan::Plan> plan) {
  const uint32_t epoch = plan->epoch;
  absl::Status status = exchanges_.prepare(*plan, world_->time());
  if (status.ok()) status = summer_.prepare(plan);
  prepared_ = status.ok() ? std::move(plan) : nullptr;
  if (!status.ok()) exchanges_.withdraw(epoch, world_->time());
  carry_out();
  return status;
}

const plan::Plan* Worker::prepared_change() const {
  if (over_ || plan_ == nullptr || prepared_ == nullptr) return nullptr;
  for (size_t i = 0; i < plan_->tensors.size(); ++i) {
    if (prepared_->tensors[i].schedule_from != plan_->tensors[i].schedule_from) return prepared_.get();
  }
  return nullptr;
}

void Worker::on_withdrawn(uint32_t epoch) {
  if (prepared_ != nullptr && prepared_->epoch == epoch) prepared_ = nullptr;
  exchanges_.withdraw(epoch, world_->time());
  carry_out();
}

std::vector<uint64_t> Worker::push_pulls() const {
  std::vector<uint64_t> begun;
  for (const uint32_t id : program_) begun.push_back(tensors_[id].begun);
  return begun;
}

void Worker::on_commit(std::shared_ptr<const plan::Plan> plan) {
  leaving_ = false;
  summer_.commit(plan->epoch);
  world_->expected.follow(*plan);
  follow(plan);
  plan_ = plan;
  prepared_ = nullptr;
  for (auto id = static_cast<uint32_t>(program_.size()); id < plan->tensors.size(); ++id) {
    const auto& all = world_->scenario.tensors;
    const auto found = std::ranges::find(all, plan->tensors[id].name, &plan::Tensor::name);
    program_.push_back(static_cast<uint32_t>(found - all.begin()));
    planned_[program_.back()] = id;
  }
  if (const absl::Status status = exchanges_.apply(plan, world_->time()); !status.ok()) {
    return world_->report->fail("worker ", index_, " can't apply: ", status.ToString());
  }
  carry_out();
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].wanted && planned_[i] != kUnplanned) start(i);
  }
}

void Worker::on_over(const absl::Status& status) {
  over_ = true;
  if (!status.ok()) fail(status);
}

// Ends with an error, as a training script does.
void Worker::fail(const absl::Status& why) {
  if (std::exchange(failed_, true)) return;
  over_ = true;
  world_->causes.check(name(), why, world_->events.now(), *world_->report);
  ++world_->report->coverage.errors;
  // A member may hear of the loss of this worker first, or a new coordinator waits for it.
  may_cause_errors(world_->events.now() + absl::ToInt64Nanoseconds(world_->scenario.job.start_timeout));
}

void Worker::crash() {
  lost_ = over_ = true;
  stop();
}

void Worker::freeze() {
  lost_ = over_ = true;
  process_.crash();
}

bool Worker::stop() {
  if (process_.is_dead()) return false;
  for (uint32_t i = 0; i < supervisor_.members(); ++i) {
    if (supervisor_.is_up(i)) world_->network.disconnect(index_, processes_[i]);
  }
  process_.crash();
  if (!follower_.is_over()) follower_.vanish();
  return true;
}

void Worker::follow(const std::shared_ptr<const plan::Plan>& plan) {
  processes_.resize(std::max(processes_.size(), plan->members.size()), UINT32_MAX);
  supervisor_.follow(plan, world_->time(), supervised_);
  for (const supervision::Drop& drop : std::exchange(supervised_.drops, {})) {
    const uint32_t process = std::exchange(processes_[drop.member], UINT32_MAX);
    if (!drop.was_up) continue;
    world_->network.disconnect(index_, process);
    exchanges_.on_disconnected(drop.member);
  }
  reports_.on_plan(*plan);
}

void Worker::connect(uint32_t i) {
  const uint32_t process = processes_[i] = number_of(plan_->members[i].address);
  world_->events.after(world_->dice.between(0, 3 * kMillisecond), [this, i, process] {
    process_.run([this, i, process] {
      if (processes_[i] != process || supervisor_.is_up(i)) return;  // the attempt is out of date
      if (!world_->reachable(index_, process)) {
        processes_[i] = UINT32_MAX;
        return supervisor_.on_closed(i, absl::UnavailableError("no connection"), world_->time(), supervised_);
      }
      world_->report->trace(world_->events.now(), "worker ", index_, " connected to member ", i, ", process ", process);
      supervisor_.on_connected(i);
      world_->network.connect(index_, process);
      world_->connected(index_, process);
      exchanges_.on_connected(i, world_->time());
      carry_out();
    });
  });
}

void Worker::lose(uint32_t process, const absl::Status& why) {
  process_.run([this, process, why] {
    for (uint32_t i = 0; i < supervisor_.members(); ++i) {
      if (processes_[i] != process || !supervisor_.is_up(i)) continue;
      world_->report->trace(world_->events.now(), "worker ", index_, " lost member ", i);
      processes_[i] = UINT32_MAX;
      supervisor_.on_closed(i, why, world_->time(), supervised_);
      world_->network.disconnect(index_, process);
      exchanges_.on_disconnected(i);
    }
  });
}

void Worker::supervise() {
  if (plan_ == nullptr) return;
  for (uint32_t i = 0; i < supervisor_.members(); ++i) {
    const bool may_ask = supervisor_.is_up(i) && supervisor_.is_doubted(i) && world_->reachable(index_, processes_[i]);
    if (may_ask && world_->network.all_arrived(index_, processes_[i])) supervisor_.on_progress(i, supervised_);
  }
  const std::vector<uint32_t> due = exchanges_.waiting_for();
  supervisor_.tick(world_->time(), due, supervised_);
  carry_out_supervision();
  const absl::Status held = hold_limit_.tick(exchanges_.held_tensor(), world_->time());
  if (!held.ok()) {
    ++world_->report->coverage.ended_in_hold;
    return fail(held);
  }
  report_losses(due);
}

void Worker::carry_out_supervision() {
  for (const uint32_t member : supervised_.dials) connect(member);
  for (const uint32_t member : supervised_.healed) reports_.withdraw(member);
  for (const supervision::Loss& loss : supervised_.losses) {
    if (loss.ends_job) {
      reports_.add_worker(loss.member, loss.why, world_->time());
    } else {
      reports_.add(loss.member, loss.since, loss.why, world_->time());
    }
  }
  supervised_.clear();
}

void Worker::report_losses(const std::vector<uint32_t>& due) {
  reports_.tick(world_->time(), due, told_);
  for (const supervision::Report& report : told_.reports) {
    world_->report->trace(world_->events.now(), "worker ", index_, " reports member ", report.member);
    ++world_->report->coverage.reports;
    follower_.fault(report.member, plan_->epoch, report.why);
    if (std::exchange(loses_report_, false)) {
      ++world_->report->coverage.reports_lost;
      follower_.break_stream();
    }
  }
  if (!told_.failure.ok()) fail(told_.failure);
  told_ = {};
}

// Begins the next round that has push_pulls; skips empty ones.
void Worker::begin_round() {
  const Scenario& scenario = world_->scenario;
  std::vector<uint32_t> order;
  for (; order.empty() && left_ > 0; ++round_) {
    for (uint32_t i = 0; i < tensors_.size(); ++i) {
      const bool is_now = scenario.joins_at[i] <= round_ && round_ < scenario.joins_at[i] + scenario.steps;
      if (is_now && scenario.tensors[i].has(index_)) order.push_back(i);
    }
  }
  in_round_ = static_cast<uint32_t>(order.size());
  world_->dice.shuffle(order);
  Nanoseconds time = 0;
  for (uint32_t tensor : order) {
    world_->events.after(time += pause(), [this, tensor] { process_.run([this, tensor] { want(tensor); }); });
  }
}

// Begins the last push_pull, in which all workers wait for each other.
void Worker::meet() {
  const auto meeting = static_cast<uint32_t>(tensors_.size() - 1);
  world_->events.after(pause(), [this, meeting] { process_.run([this, meeting] { want(meeting); }); });
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
  ++tensor.begun;
  const plan::Tensor& what = scenario.tensors[id];
  std::ranges::copy(contribution(scenario.seed, what, id, tensor.step, index_), tensor.input.begin());
  const bool in_place = world_->dice.chance(scenario.in_place_chance);
  if (in_place) ++world_->report->coverage.in_place;
  tensor.result = in_place ? tensor.input : tensor.output;
  world_->report->trace(world_->events.now(), "worker ", index_, " starts tensor ", id, " step ", tensor.step);
  exchange::PieceRequest piece{.id = uint64_t{id} << 32 | tensor.step,
                               .tensor = planned_[id],
                               .op = scenario.op_of(id, tensor.step),
                               .input = Buffer::borrow(tensor.input),
                               .output = tensor.result};
  exchanges_.start(std::move(piece), world_->time());
  if (holds()) ++world_->report->coverage.held;
  carry_out();
}

// Compares the result of a push_pull with the oracle's.
absl::Status Worker::check_sum(uint32_t tensor, uint64_t step) const {
  GLN_ASSIGN_OR_RETURN(const std::vector<std::byte>* const expected,
                       world_->expected.of(*plan_, planned_[tensor], tensor, step));
  if (std::ranges::equal(tensors_[tensor].result, *expected)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("it got wrong bits for tensor ", tensor, " step ", step));
}

void Worker::finish(const exchange::Done& done) {
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
  } else if (const absl::Status status = check_sum(id, step); !status.ok()) {
    return world_->report->fail("worker ", index_, ": ", status.message());
  }
  // The memory belongs to the program again. Overwriting it exposes frames that still hold it
  // (Network::check_still_held()).
  std::ranges::fill(tensor.input, kFreeMemory);
  std::ranges::fill(tensor.output, kFreeMemory);
  ++tensor.step;
  --left_;
  if (world_->scenario.meets && left_ <= 1) {
    if (left_ == 1) meet();
  } else if (!world_->scenario.barrier) {
    if (tensor.step < world_->scenario.steps) {
      world_->events.after(pause(), [this, id] { process_.run([this, id] { want(id); }); });
    }
  } else if (--in_round_ == 0) {
    begin_round();
  }
}

void Worker::deliver_answer(uint32_t process, const wire::Header& header, const Buffer& payload) {
  process_.run([this, process, header, payload] {
    const auto place = std::ranges::find(processes_, process);
    const auto member = static_cast<uint32_t>(place - processes_.begin());
    if (place == processes_.end() || !supervisor_.is_up(member)) return;
    follower_.on_owner_follows(header.epoch, process < world_->scenario.job.workers);
    const bool accumulated = header.type == wire::FrameType::kResult && header.op == ReduceOp::kAccumulate;
    if (accumulated) world_->accumulated.hear(*plan_, program_[header.tensor], index_, header, payload);
    const absl::Status status = exchanges_.on_frame(member, header, payload, world_->time());
    if (std::exchange(exchanges_.actions().has_progressed, false)) supervisor_.on_progress(member, supervised_);
    if (header.type == wire::FrameType::kResult) supervisor_.on_result();
    if (!status.ok()) world_->report->fail("worker ", index_, ": ", status.ToString());
    carry_out();
  });
}

void Worker::connected_to_summer(uint32_t worker) {
  process_.run([this, worker] {
    refuses_[worker] = false;
    summer_.on_connected(worker);
  });
}

void Worker::deliver_from_worker(uint32_t worker, const wire::Header& header, const Buffer& payload) {
  process_.run([this, worker, header, payload] {
    if (exchanges_.takes_accepted(header.type)) return take_slice(worker, header, payload);
    summer_.deliver(worker, header, payload);
  });
}

void Worker::take_slice(uint32_t worker, const wire::Header& header, const Buffer& payload) {
  if (refuses_[worker]) return;
  if (plan_ == nullptr) {
    refuses_[worker] = true;
    world_->network.refuse_slices(worker, index_);
    return world_->close(worker, index_);
  }
  supervisor_.on_result();
  const absl::Status status = exchanges_.on_accepted_frame(worker, header, payload, world_->time());
  if (!status.ok()) world_->report->fail("worker ", index_, ": ", status.ToString());
  carry_out();
}

void Worker::tick() {
  process_.run([this] {
    if (over_) return;
    exchanges_.on_tick(world_->time());
    carry_out();
    supervise();
    // A worker may leave once its session is idle. The messages that would make the session idle may have been lost
    // with workers that have left. The coordinator then reports that they have left; without a coordinator, the
    // worker waits for the deadline.
    const bool done = left_ == 0 && !leaving_ && (exchanges_.idle() || world_->coordinator_is_gone);
    if (!done) done_since_.reset();
    if (!done) return;
    if (!done_since_.has_value()) done_since_ = world_->time();
    if (!exchanges_.idle() && world_->time() - *done_since_ < world_->scenario.job.deadline) return;
    // The last acknowledgement to the colocated summer may have been lost with a worker that has left, so the wait for
    // it is limited.
    if (!summer_.idle_without(index_) && world_->time() - *done_since_ < world_->scenario.job.deadline) return;
    leaving_ = true;
    world_->report->trace(world_->events.now(), "worker ", index_, " leaves");
    follower_.leave();
  });
}

void Worker::carry_out() {
  exchange::Actions& actions = exchanges_.actions();
  if (!actions.refused.ok()) world_->report->fail("worker ", index_, ": ", actions.refused.ToString());
  for (exchange::Send& send : actions.sends) {
    if (!supervisor_.is_up(send.member)) continue;
    world_->network.send(Direction::kToOwner, index_, processes_[send.member], send.header, std::move(send.payload));
  }
  actions.sends.clear();
  for (const exchange::Done& done : std::exchange(actions.done, {})) finish(done);
}

std::string Worker::describe() const {
  return absl::StrCat("worker ", index_, ": ", left_, " push_pulls left, waits for members ",
                      absl::StrJoin(exchanges_.waiting_for(), ","), exchanges_.idle() ? ", idle" : "",
                      summer_.idle_without(index_) ? "" : ", its summer is not", leaving_ ? ", leaves" : "",
                      over_ ? ", over" : "");
}

void Worker::check_end() const {
  const session::Counters& counters = session_->counters();
  const executor::Counters& slices = executor_->counters();
  if (counters.outstanding_bytes != 0 && !failed_ && !lost_) {
    world_->report->fail("worker ", index_, " has ", counters.outstanding_bytes, " bytes outstanding");
  }
  Coverage& coverage = world_->report->coverage;
  coverage.repeated += counters.repeated_pushes;
  coverage.late_results += counters.duplicate_results;
  coverage.stalls += counters.stalls;
  coverage.moved += counters.moved;
  coverage.scheduled_sums += slices.results;
  coverage.repeated_slices += slices.repeated_slices;
  coverage.duplicate_slices += slices.duplicate_slices;
  summer_.count();
}

}  // namespace gleaner::sim
