#include "tests/unit/exchange/changing_job.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm-lib/executor/executor.h"
#include "comm-lib/session/session.h"
#include "common/base/mix.h"
#include "common/collective/algorithms.h"
#include "common/collective/oracle.h"

namespace gleaner::testing {
namespace {

constexpr uint64_t kJob = 7;
constexpr absl::Duration kTick = absl::Milliseconds(5);
constexpr uint64_t kMostEvents = 600'000;
constexpr uint32_t kTensors = 3;

std::vector<std::byte> copy_of(const Buffer& payload) {
  const ConstBytes bytes = payload.bytes();
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Returns the first plan: each tensor has several partitions, with owners at random.
plan::Plan first_plan(uint32_t workers, uint32_t summers, std::mt19937_64& random) {
  plan::Plan plan;
  plan.epoch = 1;
  plan.workers = workers;
  plan.members.resize(workers + summers, {.bits_per_second = 1e9, .address = "", .since = 1});
  plan.schedules = {{.algorithm = "ring"}, {.algorithm = "double-tree"}};
  plan.first_partition = {0};
  for (uint32_t i = 0; i < kTensors; ++i) {
    plan.tensors.push_back({.name = absl::StrCat("t", i), .elements = 40 + 7 * i, .since = 1});
    if (random() % 2 == 0) plan.tensors.back().schedule = static_cast<uint32_t>(random() % 2);
    uint64_t offset = 0;
    for (const uint64_t left = plan.tensors.back().bytes(); offset < left;) {
      const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(80, left - offset));
      plan.partitions.push_back({i, static_cast<uint32_t>(random() % plan.members.size()), offset, bytes, 1});
      offset += bytes;
    }
    plan.first_partition.push_back(static_cast<uint32_t>(plan.partitions.size()));
  }
  return plan;
}

}  // namespace

ChangingJob::ChangingJob(uint64_t seed)
    : seed_(seed), random_(seed), kernels_(*kernels::Kernels::choose("")), steps_(15 + seed % 20) {
  const auto workers = static_cast<uint32_t>(2 + dice(4));
  plan_ = std::make_shared<const plan::Plan>(first_plan(workers, static_cast<uint32_t>(dice(3)), random_));
  const auto members = static_cast<uint32_t>(plan_->members.size());
  last_told_.resize(members);
  for (const plan::Tensor& tensor : plan_->tensors) changes_.emplace_back().emplace_back(0, tensor.schedule);
  for (uint32_t i = 0; i < members; ++i) {
    Summer& summer = summers_.emplace_back();
    summer.engine = std::make_unique<engine::Engine>(engine::Options{kJob, i, 0}, &kernels_, &summer.pool);
    expect(summer.engine->prepare(plan_));
    expect(summer.engine->commit(1, summer.actions));
    summer.actions.clear();
  }
  for (uint32_t i = 0; i < workers; ++i) {
    Worker& worker = workers_.emplace_back();
    worker.exchanges.add(exchange::Exchanges::SummedBy::kOwners,
                         std::make_unique<session::Session>(session::Options{kJob, i, 0}, &worker.pool));
    worker.exchanges.add(exchange::Exchanges::SummedBy::kWorkers,
                         std::make_unique<executor::Executor>(executor::Options{kJob, i, 0}, &worker.pool, &kernels_));
    worker.begun.resize(kTensors);
    worker.in_flight.resize(kTensors);
    worker.connections.resize(members);
    expect(worker.exchanges.prepare(*plan_, now_));
    expect(worker.exchanges.apply(plan_, now_));
    after(some_time(20'000), [this, i] { start_something(i); });
    for (uint32_t member = 0; member < members; ++member) {
      after(some_time(20'000), [this, i, member] { connect(i, member); });
    }
    after(kTick, [this, i] { tick(i); });
  }
  after(some_time(10'000), [this] { propose(); });
}

void ChangingJob::after(absl::Duration time, std::function<void()> happen) {
  queue_.push({now_ + time, events_++, std::move(happen)});
}

void ChangingJob::fail(const std::string& what) {
  if (fault_.empty()) fault_ = what;
}

std::string ChangingJob::run() {
  while (fault_.empty() && !is_over()) {
    if (events_ > kMostEvents || queue_.empty()) {
      for (const Worker& worker : workers_) {
        absl::StrAppend(&fault_, " a worker has begun ", absl::StrJoin(worker.begun, ","), " push_pulls, holds '",
                        worker.exchanges.held_tensor(), "' and waits for ",
                        absl::StrJoin(worker.exchanges.waiting_for(), ","), ";");
      }
      return "the job does not end:" + fault_;
    }
    const Event event = queue_.top();
    queue_.pop();
    now_ = event.at;
    event.happen();
  }
  return fault_;
}

// Returns whether all push_pulls have ended.
bool ChangingJob::has_ended() const {
  return std::ranges::all_of(workers_, [this](const Worker& worker) {
    return worker.pieces.empty() &&
           std::ranges::all_of(worker.begun, [this](uint64_t begun) { return begun == steps_; });
  });
}

bool ChangingJob::is_over() const {
  return has_ended() && std::ranges::all_of(workers_, [](const Worker& worker) { return worker.exchanges.idle(); });
}

void ChangingJob::tell(uint32_t member, std::function<void()> message) {
  last_told_[member] = std::max(last_told_[member], now_ + some_time(dice(4) == 0 ? 30'000 : 2'000));
  after(last_told_[member] - now_, std::move(message));
}

// Returns a plan that changes the strategies of some tensors soon, and the owners of some partitions.
std::shared_ptr<const plan::Plan> ChangingJob::next_plan() {
  plan::Plan plan = *plan_;
  plan.epoch = ++last_epoch_;
  if (dice(4) == 0 && plan.schedules.size() < 6) plan.schedules.push_back({.algorithm = "two-level"});
  for (uint32_t i = 0; i < kTensors; ++i) {
    if (dice(2) == 0) continue;
    uint64_t begun = 0;
    for (const Worker& worker : workers_) begun = std::max(begun, worker.begun[i]);
    plan::Tensor& tensor = plan.tensors[i];
    const uint64_t from = begun + dice(4);
    if (from <= tensor.schedule_from) continue;
    tensor.schedule_from = from;
    const uint64_t choice = dice(plan.schedules.size() + 2);
    tensor.schedule = choice < plan.schedules.size() ? Schedule(static_cast<uint32_t>(choice)) : std::nullopt;
  }
  for (plan::Partition& partition : plan.partitions) {
    const auto owner = static_cast<uint32_t>(dice(plan.members.size()));
    if (owner == partition.owner || dice(5) > 0) continue;
    partition.owner = owner;
    partition.since = plan.epoch;
  }
  return std::make_shared<const plan::Plan>(std::move(plan));
}

void ChangingJob::propose() {
  if (has_ended()) return;
  const auto plan = next_plan();
  answers_ = 0;
  is_refused_ = false;
  for (uint32_t member = 0; member < summers_.size(); ++member) {
    tell(member, [this, member, plan] {
      const absl::Status answer = prepare(member, plan);
      after(some_time(2'000), [this, plan, answer] { on_answer(plan, answer); });
    });
  }
}

absl::Status ChangingJob::prepare(uint32_t member, const std::shared_ptr<const plan::Plan>& plan) {
  if (member < workers_.size()) {
    const absl::Status status = workers_[member].exchanges.prepare(*plan, now_);
    carry_out(member);
    if (!status.ok()) return status;
  }
  const absl::Status status = summers_[member].engine->prepare(plan);
  expect(status);
  return status;
}

void ChangingJob::on_answer(const std::shared_ptr<const plan::Plan>& plan, const absl::Status& answer) {
  is_refused_ = is_refused_ || !answer.ok();
  if (++answers_ < summers_.size()) return;
  if (is_refused_ || dice(5) == 0) {
    ++(is_refused_ ? counts_.refused : counts_.withdrawn);
    // A Prepare of the next plan withdraws the plan, too.
    const bool is_replaced = dice(3) == 0;
    for (uint32_t member = 0; !is_replaced && member < workers_.size(); ++member) {
      tell(member, [this, member, epoch = plan->epoch] {
        workers_[member].exchanges.withdraw(epoch, now_);
        carry_out(member);
      });
    }
  } else {
    ++counts_.committed;
    plan_ = plan;
    for (uint32_t i = 0; i < kTensors; ++i) {
      const plan::Tensor& tensor = plan->tensors[i];
      if (tensor.schedule_from > changes_[i].back().first)
        changes_[i].emplace_back(tensor.schedule_from, tensor.schedule);
    }
    for (uint32_t member = 0; member < summers_.size(); ++member)
      tell(member, [this, member, plan] { commit(member, plan); });
  }
  after(some_time(20'000), [this] { propose(); });
}

void ChangingJob::commit(uint32_t member, const std::shared_ptr<const plan::Plan>& plan) {
  expect(summers_[member].engine->commit(plan->epoch, summers_[member].actions));
  carry_out_summer(member);
  if (member >= workers_.size()) return;
  expect(workers_[member].exchanges.apply(plan, now_));
  carry_out(member);
}

void ChangingJob::tick(uint32_t index) {
  workers_[index].exchanges.on_tick(now_);
  carry_out(index);
  after(kTick, [this, index] { tick(index); });
}

void ChangingJob::start_something(uint32_t index) {
  Worker& worker = workers_[index];
  const auto tensor = static_cast<uint32_t>(dice(kTensors));
  if (worker.begun[tensor] < steps_ && worker.in_flight[tensor] == 0) start_pieces(index, tensor);
  after(some_time(dice(8) == 0 ? 20'000 : 500), [this, index] { start_something(index); });
}

void ChangingJob::start_pieces(uint32_t index, uint32_t tensor) {
  Worker& worker = workers_[index];
  const Push push{tensor, worker.begun[tensor]++};
  const std::vector<float> all = contribution(index, push);
  const std::span<const plan::Partition> partitions = plan_->partitions_of(tensor);
  const auto count = static_cast<uint32_t>(partitions.size());
  const auto cut = static_cast<uint32_t>(dice(count));
  worker.in_flight[tensor] = cut == 0 ? 1 : 2;
  for (const auto& [first, end] : {std::pair(0u, cut), std::pair(cut, count)}) {
    if (first == end) continue;
    const size_t begin = partitions[first].offset / sizeof(float);
    const size_t stop = (partitions[end - 1].offset + partitions[end - 1].bytes) / sizeof(float);
    const uint64_t id = ++piece_ids_;
    Piece& piece = worker.pieces[id];
    piece = {push, begin, {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(stop)}};
    const MutableBytes memory = std::as_writable_bytes(std::span(piece.memory));
    worker.exchanges.start({.id = id,
                            .tensor = tensor,
                            .op = ReduceOp::kSum,
                            .input = Buffer::borrow(memory),
                            .output = memory,
                            .first = first,
                            .count = end - first},
                           now_);
    if (!worker.exchanges.held_tensor().empty()) ++counts_.held;
  }
  carry_out(index);
}

void ChangingJob::carry_out(uint32_t index) {
  Worker& worker = workers_[index];
  while (worker.exchanges.has_actions()) {
    exchange::Actions actions = std::exchange(worker.exchanges.actions(), {});
    expect(actions.refused);
    for (exchange::Send& send : actions.sends) {
      const std::shared_ptr<Connection> connection = worker.connections[send.member];
      if (connection == nullptr) continue;
      transmit(connection, 0, [this, index, member = send.member, header = send.header, bytes = copy_of(send.payload)] {
        arrive(index, member, header, bytes);
      });
      if (send.member != index && dice(60) == 0) {
        after(some_time(2'000), [this, index, member = send.member] { break_connection(index, member); });
      }
    }
    for (const exchange::Done& done : actions.done) check(index, done);
  }
}

void ChangingJob::carry_out_summer(uint32_t member) {
  Summer& summer = summers_[member];
  for (engine::Send& send : summer.actions.sends) {
    const std::shared_ptr<Connection> connection = workers_[send.worker].connections[member];
    if (connection == nullptr) continue;
    transmit(connection, 1, [this, worker = send.worker, member, header = send.header, bytes = copy_of(send.payload)] {
      Buffer payload = workers_[worker].pool.take(bytes.size());
      std::ranges::copy(bytes, payload.bytes().begin());
      expect(workers_[worker].exchanges.on_frame(member, header, std::move(payload), now_));
      carry_out(worker);
    });
  }
  summer.actions.clear();
}

void ChangingJob::transmit(const std::shared_ptr<Connection>& connection, int direction, std::function<void()> arrive) {
  absl::Duration& last = connection->last_arrival[direction];
  last = std::max(last, now_ + some_time(dice(10) == 0 ? 10'000 : 500));
  after(last - now_, [connection, arrive = std::move(arrive)] {
    if (connection->is_open) arrive();
  });
}

void ChangingJob::arrive(uint32_t index, uint32_t member, const wire::Header& header,
                         const std::vector<std::byte>& bytes) {
  const bool is_of_schedule = wire::is_of_schedule(header.type);
  BufferPool& pool = is_of_schedule ? workers_[member].pool : summers_[member].pool;
  Buffer payload = pool.take(bytes.size());
  std::ranges::copy(bytes, payload.bytes().begin());
  if (is_of_schedule) {
    expect(workers_[member].exchanges.on_accepted_frame(index, header, std::move(payload), now_));
    return carry_out(member);
  }
  Summer& summer = summers_[member];
  const absl::Status status = summer.engine->on_frame(index, header, std::move(payload), summer.actions);
  carry_out_summer(member);
  // The owner can't take the frame yet, so the worker connects again.
  if (absl::IsFailedPrecondition(status)) return break_connection(index, member);
  expect(status);
}

void ChangingJob::check(uint32_t index, const exchange::Done& done) {
  expect(done.status);
  Worker& worker = workers_[index];
  const Piece piece = std::move(worker.pieces.at(done.id));
  worker.pieces.erase(done.id);
  --worker.in_flight[piece.push.tensor];
  const std::vector<float>& sums = expected(piece.push)[index];
  ++(strategy_of(piece.push).has_value() ? counts_.by_schedules : counts_.by_owners);
  if (std::memcmp(piece.memory.data(), sums.data() + piece.first, piece.memory.size() * sizeof(float)) == 0) return;
  fail(absl::StrCat("worker ", index, " has a wrong sum of tensor ", piece.push.tensor, " push_pull ",
                    piece.push.number));
}

void ChangingJob::connect(uint32_t index, uint32_t member) {
  Worker& worker = workers_[index];
  if (worker.connections[member] != nullptr) return;
  worker.connections[member] = std::make_shared<Connection>();
  summers_[member].engine->on_connected(index, summers_[member].actions);
  carry_out_summer(member);
  worker.exchanges.on_connected(member, now_);
  carry_out(index);
}

void ChangingJob::break_connection(uint32_t index, uint32_t member) {
  std::shared_ptr<Connection>& connection = workers_[index].connections[member];
  if (connection == nullptr) return;
  connection->is_open = false;
  connection = nullptr;
  workers_[index].exchanges.on_disconnected(member);
  after(some_time(20'000), [this, index, member] { connect(index, member); });
}

std::vector<float> ChangingJob::contribution(uint32_t worker, const Push& push) const {
  std::vector<float> values(plan_->tensors[push.tensor].elements);
  const uint64_t key = mix_bits(seed_ * 1'000'003 + worker * 10'007 + push.tensor * 101 + push.number + 1);
  for (uint64_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = splitmix64(key + i);
    values[i] = std::ldexp(static_cast<float>(static_cast<int32_t>(bits >> 32)), -31 + static_cast<int>(bits % 7));
  }
  return values;
}

ChangingJob::Schedule ChangingJob::strategy_of(const Push& push) const {
  auto change = changes_[push.tensor].rbegin();
  while (change->first > push.number) ++change;
  return change->second;
}

const std::vector<std::vector<float>>& ChangingJob::expected(const Push& push) {
  const auto [at, is_new] = expected_.try_emplace(push, workers_.size());
  if (!is_new) return at->second;
  std::vector<std::vector<float>> all;
  for (uint32_t i = 0; i < workers_.size(); ++i) all.push_back(contribution(i, push));
  if (const Schedule index = strategy_of(push); !index.has_value()) {
    std::vector<const std::byte*> sources;
    for (const auto& each : all) sources.push_back(reinterpret_cast<const std::byte*>(each.data()));
    std::vector<float> sum(all[0].size());
    kernels_.sum(DataType::kFloat32, sources, reinterpret_cast<std::byte*>(sum.data()), sum.size(), 1);
    std::ranges::fill(at->second, sum);
  } else {
    const auto schedule = collective::make_schedule({.algorithm = plan_->schedules[*index].algorithm}, plan_->workers);
    for (const plan::Partition& partition : plan_->partitions_of(push.tensor)) {
      const auto begin = static_cast<ptrdiff_t>(partition.offset / sizeof(float));
      const auto end = begin + static_cast<ptrdiff_t>(partition.bytes / sizeof(float));
      std::vector<std::vector<std::byte>> inputs;
      for (const auto& each : all) inputs.push_back(bytes_of({each.begin() + begin, each.begin() + end}));
      const auto sums =
          collective::execute_all_reduce(*schedule, {DataType::kFloat32, DataType::kFloat32, 1}, std::move(inputs));
      for (uint32_t i = 0; i < workers_.size(); ++i) {
        std::vector<float>& whole = at->second[i];
        whole.resize(static_cast<size_t>(end));
        std::memcpy(whole.data() + begin, (*sums)[i].data(), partition.bytes);
      }
    }
  }
  return at->second;
}

}  // namespace gleaner::testing
