// Compares the sums of real local groups, sessions and engines with an oracle, for every division of the same ranks
// into workers. Frames go from session to engine and back without a transport.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "comm-lib/session/session.h"
#include "common/kernels/float_formats.h"
#include "summation-service/engine/engine.h"
#include "tests/unit/engine/plans.h"
#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

using Bytes = std::vector<std::byte>;

constexpr uint64_t kJob = 7;
constexpr size_t kElements = 2 * 999;  // two partitions

// One push_pull of one tensor by n workers of g ranks each. Its partitions belong to a CPU summer and to worker 0.
class PushPull {
 public:
  PushPull(uint32_t workers, uint32_t local_ranks, DataType type) : type_(type) {
    const auto half = static_cast<uint32_t>(kElements / 2 * size_of(type));
    plan_ = build_plan({.workers = workers,
                        .local_ranks = local_ranks,
                        .tensors = {{.owners = {workers, 0}, .bytes = half, .type = type}}});
    for (const uint32_t owner : {workers, 0u}) {
      const engine::Options options{.job = kJob, .self = owner};
      engines_[owner] = std::make_unique<engine::Engine>(options, test_kernels(), &pool_);
      EXPECT_TRUE(engines_[owner]->prepare(plan_).ok());
      EXPECT_TRUE(engines_[owner]->commit(1, answers_).ok());
    }
    answers_.clear();
    for (uint32_t worker = 0; worker < workers; ++worker) add_worker(worker, local_ranks);
  }

  // Returns the result, which must have the same bits on every rank.
  Bytes run(ReduceOp op, const std::vector<Bytes>& inputs) {
    op_ = op;
    std::vector<Bytes> outputs(inputs.size(), Bytes(inputs[0].size()));
    const size_t local_ranks = plan_->local_ranks;
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      Worker& worker = *workers_[rank / local_ranks];
      if (worker.group == nullptr) {
        worker.input = inputs[rank];
        begin(worker, worker.input, outputs[rank]);
      } else {
        auto& group = (*worker.group)[rank % local_ranks].group;
        EXPECT_TRUE(group->start(0, op, inputs[rank], outputs[rank]).ok());
      }
    }
    const absl::Duration start = test_env().clock->since_start();
    while (!is_done() && test_env().clock->since_start() - start < absl::Minutes(1)) turn();
    EXPECT_TRUE(is_done());
    for (const Bytes& output : outputs) EXPECT_TRUE(output == outputs[0]);
    return outputs[0];
  }

 private:
  struct Worker {
    uint32_t index = 0;
    std::unique_ptr<Ranks> group;  // null: one rank
    std::unique_ptr<session::Session> session;
    Bytes input;  // of a worker with one rank
    exchange::Actions actions;
    bool done = false;
  };

  void add_worker(uint32_t index, uint32_t local_ranks) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.index = index;
    worker.session = std::make_unique<session::Session>(session::Options{.job = kJob, .worker = index}, &pool_);
    EXPECT_TRUE(worker.session->apply(plan_, {}, worker.actions).ok());
    for (const auto& [owner, engine] : engines_) worker.session->on_connected(owner, {}, worker.actions);
    if (local_ranks == 1) return;
    worker.group = std::make_unique<Ranks>(local_ranks);
    EXPECT_TRUE(worker.group->connect());
    worker.group->register_tensors({{kElements, type_}});
    TestRank& leader = (*worker.group)[0];
    leader.network = [this, &worker, &leader](uint32_t, MutableBytes sum) { begin(worker, sum, leader.results[0]); };
  }

  void begin(Worker& worker, MutableBytes input, MutableBytes output) {
    const absl::Status status =
        worker.session->start({.op = op_, .input = Buffer::borrow(input), .output = output}, {}, worker.actions);
    EXPECT_TRUE(status.ok()) << status;
  }

  void turn() {
    for (const auto& worker : workers_) {
      if (worker->group != nullptr) worker->group->turn();
      for (exchange::Send& send : std::exchange(worker->actions.sends, {})) {
        const absl::Status status =
            engines_.at(send.member)->on_frame(worker->index, send.header, std::move(send.payload), answers_);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
    for (engine::Send& send : std::exchange(answers_.sends, {})) {
      Worker& worker = *workers_[send.worker];
      const absl::Status status =
          worker.session->on_frame(send.header.sender, send.header, std::move(send.payload), {}, worker.actions);
      EXPECT_TRUE(status.ok()) << status;
    }
    for (const auto& worker : workers_) {
      worker->session->on_tick({}, worker->actions);
      for (const exchange::Done& done : std::exchange(worker->actions.done, {})) {
        if (worker->group != nullptr) (*worker->group)[0].group->publish(0, done.status);
        worker->done = true;
      }
    }
  }

  bool is_done() const {
    return std::ranges::all_of(workers_, [](const auto& worker) {
      if (worker->group == nullptr) return worker->done;
      return worker->group->all([](const TestRank& rank) { return rank.done_count == 1; });
    });
  }

  const DataType type_;
  ReduceOp op_ = ReduceOp::kSum;
  BufferPool pool_;
  std::shared_ptr<const plan::Plan> plan_;
  std::map<uint32_t, std::unique_ptr<engine::Engine>> engines_;  // by owner
  engine::Actions answers_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// How a type is stored, added and rounded.
struct Float16 {
  using Stored = uint16_t;
  static float widen(uint16_t bits) { return kernels::float16_to_float32(bits); }
  static uint16_t round(float value) { return kernels::float32_to_float16(value); }
};
struct BFloat16 {
  using Stored = uint16_t;
  static float widen(uint16_t bits) { return kernels::bfloat16_to_float32(bits); }
  static uint16_t round(float value) { return kernels::float32_to_bfloat16(value); }
};
struct Float32 {
  using Stored = float;
  static float widen(float value) { return value; }
  static float round(float value) { return value; }
};

// Adds local ranks, then workers, divides once and rounds once.
template <typename Type>
Bytes oracle(const std::vector<Bytes>& inputs, uint32_t local_ranks, ReduceOp op) {
  using Stored = typename Type::Stored;
  Bytes result(inputs[0].size());
  for (size_t at = 0; at < result.size(); at += sizeof(Stored)) {
    float total = 0;
    for (size_t worker = 0; worker * local_ranks < inputs.size(); ++worker) {
      float partial = 0;
      for (size_t local = 0; local < local_ranks; ++local) {
        Stored stored;
        std::memcpy(&stored, inputs[worker * local_ranks + local].data() + at, sizeof(stored));
        partial = local == 0 ? Type::widen(stored) : partial + Type::widen(stored);
      }
      total = worker == 0 ? partial : total + partial;
    }
    if (op == ReduceOp::kAverage) total /= static_cast<float>(inputs.size());
    const Stored stored = Type::round(total);
    std::memcpy(result.data() + at, &stored, sizeof(stored));
  }
  return result;
}

// Returns numbers up to 20000. Sums of 12 `exact` ones need at most 24 bits.
template <typename Type>
Bytes values(std::mt19937& random, bool exact) {
  Bytes bytes(kElements * sizeof(typename Type::Stored));
  for (size_t i = 0; i < kElements; ++i) {
    const double drawn = std::uniform_real_distribution(-20000.0, 20000.0)(random);
    const double scaled = exact ? std::round(drawn) : std::ldexp(drawn, -static_cast<int>(random() % 20));
    const auto stored = Type::round(static_cast<float>(i == 0 ? 20000.0 : scaled));
    std::memcpy(bytes.data() + i * sizeof(stored), &stored, sizeof(stored));
  }
  return bytes;
}

template <typename Type>
void expect_oracle(DataType type) {
  constexpr uint32_t kRanks = 12;
  std::mt19937 random(5);
  for (const bool exact : {true, false}) {
    std::vector<Bytes> inputs;
    for (uint32_t rank = 0; rank < kRanks; ++rank) inputs.push_back(values<Type>(random, exact));
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
      const Bytes alone = oracle<Type>(inputs, 1, op);
      for (const uint32_t local_ranks : {1u, 2u, 3u, 4u, 6u, 12u}) {
        SCOPED_TRACE(::testing::Message() << name_of(type).data() << ", exact " << exact << ", " << name_of(op).data()
                                          << ", " << local_ranks << " local ranks");
        const Bytes result = PushPull(kRanks / local_ranks, local_ranks, type).run(op, inputs);
        EXPECT_TRUE(result == oracle<Type>(inputs, local_ranks, op));
        EXPECT_TRUE(!exact || result == alone) << "exact sums have the same bits for every division";
      }
    }
  }
}

TEST(Divisions, SumsOfFloat16AreRoundedOnce) { expect_oracle<Float16>(DataType::kFloat16); }
TEST(Divisions, SumsOfBFloat16AreRoundedOnce) { expect_oracle<BFloat16>(DataType::kBFloat16); }
TEST(Divisions, SumsOfFloat32AreInOrderOfLocalRankThenWorker) { expect_oracle<Float32>(DataType::kFloat32); }

}  // namespace
}  // namespace gleaner::testing
