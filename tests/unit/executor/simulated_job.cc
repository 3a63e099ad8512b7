#include "tests/unit/executor/simulated_job.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mix.h"
#include "common/collective/algorithms.h"
#include "common/collective/oracle.h"
#include "common/kernels/float_formats.h"
#include "common/plan/schedule_name.h"

namespace gleaner::testing {
namespace {

constexpr uint64_t kJob = 7;
constexpr absl::Duration kTick = absl::Milliseconds(5);
constexpr uint64_t kMostEvents = 400'000;

template <typename T>
void put(T value, std::byte* at) {
  std::memcpy(at, &value, sizeof(value));
}

// Writes a value whose bits follow from `bits`: mostly numbers of like size, whose sums round, sometimes any bits.
void put_value(DataType type, uint64_t bits, std::byte* at) {
  const bool is_any = bits % 251 == 0;
  const double number =
      std::ldexp(static_cast<double>(static_cast<int32_t>(bits >> 32)), -31 + static_cast<int>(bits % 7));
  switch (type) {
    case DataType::kFloat32:
      return put(is_any ? std::bit_cast<float>(static_cast<uint32_t>(bits >> 8)) : static_cast<float>(number), at);
    case DataType::kFloat64:
      return put(is_any ? std::bit_cast<double>(bits) : number / 3, at);
    case DataType::kFloat16:
      return put(is_any ? static_cast<uint16_t>(bits >> 9) : kernels::float32_to_float16(static_cast<float>(number)),
                 at);
    case DataType::kBFloat16:
      return put(is_any ? static_cast<uint16_t>(bits >> 9) : kernels::float32_to_bfloat16(static_cast<float>(number)),
                 at);
    case DataType::kInt32:
      return put(static_cast<uint32_t>(bits >> 7), at);
  }
}

}  // namespace

SimulatedJob::SimulatedJob(JobSpec spec, uint64_t seed)
    : spec_(std::move(spec)),
      seed_(seed),
      random_(seed),
      kernels_(*kernels::Kernels::choose("")),
      plan_(build_plan(spec_.plan)),
      workers_(spec_.plan.workers) {
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    worker.executor = std::make_unique<executor::Executor>(
        executor::Options{.job = kJob, .worker = i, .window_bytes = spec_.window_bytes}, &worker.pool, &kernels_);
    worker.begun.resize(plan_->tensors.size());
    worker.pieces_in_flight.resize(plan_->tensors.size());
    worker.connections.resize(workers_.size());
    const absl::Status status = worker.executor->apply(plan_, now_, worker.actions);
    if (!status.ok()) fail(status.ToString());
    after(random_time(20'000), [this, i] { start_something(i); });
    after(kTick, [this, i] { tick(i); });
    for (uint32_t peer = 0; peer < workers_.size(); ++peer) {
      if (peer != i) after(random_time(20'000), [this, i, peer] { connect(i, peer); });
    }
  }
}

void SimulatedJob::after(absl::Duration time, std::function<void()> happen) {
  queue_.push({now_ + time, events_++, std::move(happen)});
}

void SimulatedJob::fail(const std::string& what) {
  if (fault_.empty()) fault_ = what;
}

std::string SimulatedJob::run() {
  while (fault_.empty() && !is_over()) {
    if (events_ > kMostEvents || queue_.empty()) {
      fail(absl::StrCat("the job does not end:", describe_rest()));
      break;
    }
    const Event event = queue_.top();
    queue_.pop();
    now_ = event.at;
    event.happen();
  }
  return fault_;
}

bool SimulatedJob::is_over() const {
  for (const Worker& worker : workers_) {
    if (!worker.executor->idle()) return false;
    for (const uint64_t begun : worker.begun) {
      if (begun < spec_.steps) return false;
    }
  }
  return true;
}

std::string SimulatedJob::describe_rest() const {
  std::string text;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    absl::StrAppend(&text, " worker ", i, " has begun ", absl::StrJoin(workers_[i].begun, ","), " push_pulls, ",
                    workers_[i].pieces.size(), " pieces are in flight, and waits for workers ",
                    absl::StrJoin(workers_[i].executor->waiting_for(), ","), ";");
  }
  return text;
}

uint64_t SimulatedJob::repeats() const {
  uint64_t repeats = 0;
  for (const Worker& worker : workers_) repeats += worker.executor->counters().repeated_slices;
  return repeats;
}

// Starts the next push_pull of a random tensor that is not in flight.
void SimulatedJob::start_something(uint32_t index) {
  Worker& worker = workers_[index];
  std::vector<uint32_t> startable;
  bool is_left = false;
  for (uint32_t i = 0; i < worker.begun.size(); ++i) {
    is_left = is_left || worker.begun[i] < spec_.steps;
    if (worker.begun[i] < spec_.steps && worker.pieces_in_flight[i] == 0) startable.push_back(i);
  }
  if (!startable.empty()) start_pieces(index, startable[dice(startable.size())]);
  if (is_left) after(random_time(dice(4) == 0 ? 20'000 : 200), [this, index] { start_something(index); });
}

void SimulatedJob::start_pieces(uint32_t index, uint32_t tensor) {
  Worker& worker = workers_[index];
  const Push push{tensor, worker.begun[tensor]++};
  const auto [op, is_new] = ops_.try_emplace(push, ReduceOp::kSum);
  if (is_new && plan_->tensors[tensor].type != DataType::kInt32 && dice(2) == 0) op->second = ReduceOp::kAverage;
  const std::vector<std::byte> all = contribution(index, push);
  const auto partitions = static_cast<uint32_t>(plan_->partitions_of(tensor).size());
  const plan::Encoding types = plan_->encoding(plan_->tensors[tensor]);
  const uint32_t cut = static_cast<uint32_t>(dice(partitions + 1));
  for (const auto& [first, end] : {std::pair(0u, cut), std::pair(cut, partitions)}) {
    if (first == end && partitions > 0) continue;
    if (partitions == 0 && worker.pieces_in_flight[tensor] > 0) continue;
    Piece piece{push, first, end - first, 0, {}, {}};
    uint64_t bytes = 0;
    for (const plan::Partition& each : plan_->partitions_of(tensor).subspan(first, end - first)) bytes += each.bytes;
    if (first < end) piece.offset = plan_->partitions_of(tensor)[first].offset;
    const auto begin = all.begin() + static_cast<ptrdiff_t>(types.contribution_bytes(piece.offset));
    piece.input.assign(begin, begin + static_cast<ptrdiff_t>(types.contribution_bytes(bytes)));
    const bool in_place = types.contribution == types.result && dice(2) == 0;
    if (!in_place) piece.output.resize(bytes);
    const uint64_t id = ++pieces_;
    Piece& kept = worker.pieces[id] = std::move(piece);
    ++worker.pieces_in_flight[tensor];
    const absl::Status status = worker.executor->start({.id = id,
                                                        .tensor = tensor,
                                                        .op = op->second,
                                                        .input = Buffer::borrow(kept.input),
                                                        .output = in_place ? kept.input : kept.output,
                                                        .first = kept.first,
                                                        .count = kept.count,
                                                        .schedule = plan_->tensors[tensor].schedule},
                                                       now_, worker.actions);
    if (!status.ok()) return fail(status.ToString());
    carry_out(index);
  }
}

void SimulatedJob::carry_out(uint32_t index) {
  Worker& worker = workers_[index];
  if (!worker.actions.refused.ok()) return fail(worker.actions.refused.ToString());
  for (exchange::Send& send : worker.actions.sends) transmit(index, std::move(send));
  worker.actions.sends.clear();
  for (const exchange::Done& done : worker.actions.done) check(index, done);
  worker.actions.done.clear();
}

void SimulatedJob::transmit(uint32_t index, exchange::Send send) {
  const std::shared_ptr<Connection> connection = workers_[index].connections[send.member];
  if (connection == nullptr) return fail("a frame was sent without a connection");
  connection->last_arrival = std::max(connection->last_arrival, now_ + random_time(dice(8) == 0 ? 20'000 : 1'000));
  const uint64_t number = connection->sent++;
  const ConstBytes bytes = send.payload.bytes();
  std::vector<std::byte> as_sent(bytes.begin(), bytes.end());
  after(connection->last_arrival - now_,
        [this, connection, number, send = std::move(send), as_sent = std::move(as_sent)] {
          if (number < connection->lost_from) arrive(send.member, send, as_sent, connection->is_open);
        });
  if (spec_.breaks && dice(40) == 0) {
    after(random_time(2'000), [this, index, peer = send.member] { break_connection(index, peer); });
  }
}

void SimulatedJob::arrive(uint32_t to, const exchange::Send& send, const std::vector<std::byte>& as_sent,
                          bool is_current) {
  if (is_current && !std::ranges::equal(send.payload.bytes(), as_sent)) {
    return fail("a slice changed while it was being sent");
  }
  Worker& worker = workers_[to];
  Buffer payload = worker.pool.take(as_sent.size());
  std::ranges::copy(as_sent, payload.bytes().begin());
  const absl::Status status =
      worker.executor->on_frame(send.header.sender, send.header, std::move(payload), now_, worker.actions);
  if (!status.ok()) return fail(status.ToString());
  carry_out(to);
}

void SimulatedJob::check(uint32_t index, const exchange::Done& done) {
  if (!done.status.ok()) return fail(done.status.ToString());
  Worker& worker = workers_[index];
  const auto at = worker.pieces.find(done.id);
  if (at == worker.pieces.end()) return fail("a piece ended twice");
  const Piece& piece = at->second;
  const std::vector<std::byte>& result = piece.output.empty() ? piece.input : piece.output;
  const std::vector<std::byte>& sums = expected(piece.push)[rank_of(piece.push, index)];
  if (!std::equal(result.begin(), result.end(), sums.begin() + static_cast<ptrdiff_t>(piece.offset))) {
    fail(absl::StrCat("worker ", index, " has a wrong sum of tensor ", piece.push.tensor, " step ", piece.push.step));
  }
  --worker.pieces_in_flight[piece.push.tensor];
  worker.pieces.erase(at);
}

void SimulatedJob::connect(uint32_t index, uint32_t peer) {
  Worker& worker = workers_[index];
  worker.connections[peer] = std::make_shared<Connection>();
  worker.executor->on_connected(peer, now_, worker.actions);
  carry_out(index);
}

void SimulatedJob::break_connection(uint32_t index, uint32_t peer) {
  Worker& worker = workers_[index];
  std::shared_ptr<Connection>& connection = worker.connections[peer];
  if (connection == nullptr) return;
  connection->is_open = false;
  connection->lost_from = connection->sent - dice(std::min<uint64_t>(connection->sent, 6) + 1);
  connection = nullptr;
  if (dice(3) == 0) return connect(index, peer);  // a connection replaces another
  worker.executor->on_disconnected(peer);
  after(random_time(20'000), [this, index, peer] {
    if (workers_[index].connections[peer] == nullptr) connect(index, peer);
  });
}

void SimulatedJob::tick(uint32_t index) {
  workers_[index].executor->on_tick(now_, workers_[index].actions);
  carry_out(index);
  after(kTick, [this, index] { tick(index); });
}

std::vector<std::byte> SimulatedJob::contribution(uint32_t worker, const Push& push) const {
  const plan::Tensor& tensor = plan_->tensors[push.tensor];
  const DataType type = plan_->encoding(tensor).contribution;
  std::vector<std::byte> values(tensor.elements * size_of(type));
  const uint64_t key = mix_bits(seed_ * 1'000'003 + worker * 10'007 + push.tensor * 101 + push.step + 1);
  for (uint64_t i = 0; i < tensor.elements; ++i)
    put_value(type, splitmix64(key + i), values.data() + i * size_of(type));
  return values;
}

uint32_t SimulatedJob::rank_of(const Push& push, uint32_t worker) const {
  const collective::Spec& schedule = plan_->schedules[*plan_->tensors[push.tensor].schedule];
  // After an all-gather, sums are in the order of workers.
  return schedule.rank_of.empty() || schedule.algorithm == plan::kGatherAlgorithm ? worker : schedule.rank_of[worker];
}

const std::vector<std::vector<std::byte>>& SimulatedJob::expected(const Push& push) {
  const auto [at, is_new] = expected_.try_emplace(push, workers_.size());
  if (!is_new) return at->second;
  const plan::Tensor& tensor = plan_->tensors[push.tensor];
  const auto schedule = collective::make_schedule(plan_->schedules[*tensor.schedule], plan_->workers);
  const uint32_t divisor = ops_[push] == ReduceOp::kAverage ? plan_->workers * plan_->local_ranks : 1;
  std::vector<std::vector<std::byte>> all(workers_.size());
  for (uint32_t i = 0; i < workers_.size(); ++i) all[rank_of(push, i)] = contribution(i, push);
  const plan::Encoding types = plan_->encoding(tensor);
  for (const plan::Partition& partition : plan_->partitions_of(push.tensor)) {
    std::vector<std::vector<std::byte>> inputs;
    for (const std::vector<std::byte>& whole : all) {
      const auto begin = whole.begin() + static_cast<ptrdiff_t>(types.contribution_bytes(partition.offset));
      inputs.emplace_back(begin, begin + plan_->push_bytes(partition));
    }
    const auto sums =
        collective::execute_all_reduce(*schedule, {types.contribution, types.result, divisor}, std::move(inputs));
    for (uint32_t rank = 0; rank < sums->size(); ++rank) {
      at->second[rank].insert(at->second[rank].end(), (*sums)[rank].begin(), (*sums)[rank].end());
    }
  }
  return at->second;
}

}  // namespace gleaner::testing
