#include "tests/unit/device_stage/rig.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "absl/time/clock.h"
#include "common/base/env.h"

namespace gleaner::device {
namespace {

const Env& quiet_env() {
  static SystemEnv env({"device_stage_test", LogLevel::kOff});
  return env.env();
}

MutableBytes span_of(CUdeviceptr memory, size_t bytes) { return {reinterpret_cast<std::byte*>(memory), bytes}; }

std::byte plus_one(std::byte value) { return std::byte(std::to_integer<unsigned>(value) + 1); }

CudaApi driver_api;  // of the double

// Returns the double's functions, some of which tell the test of their calls.
CudaApi watch(const CudaApi& api) {
  driver_api = api;
  CudaApi watching = api;
  watching.cuStreamCreateWithPriority = [](CUstream* stream, unsigned flags, int priority) {
    const CUresult result = driver_api.cuStreamCreateWithPriority(stream, flags, priority);
    watched().streams.push_back(*stream);
    return result;
  };
  watching.cuMemHostAlloc = [](void** memory, size_t bytes, unsigned flags) {
    watched().pinned.push_back(bytes);
    return driver_api.cuMemHostAlloc(memory, bytes, flags);
  };
  watching.cuStreamQuery = [](CUstream stream) {
    if (const auto on_query = std::exchange(watched().on_query, nullptr)) on_query();
    return driver_api.cuStreamQuery(stream);
  };
  return watching;
}

}  // namespace

Watched& watched() {
  static Watched calls;
  return calls;
}

testing::TensorSpec tensor_of(size_t bytes, int32_t priority) {
  testing::TensorSpec tensor{.type = DataType::kFloat32, .priority = priority};
  if (bytes == 0) return tensor;
  tensor.owners.assign((bytes + kPartition - 1) / kPartition, 0);
  tensor.bytes = static_cast<uint32_t>(std::min<size_t>(bytes, kPartition));
  return tensor;
}

std::vector<std::byte> contribution(size_t bytes, uint32_t seed) {
  constexpr std::array<uint32_t, 4> kNans = {0x7f800001, 0xffc12345, 0x7fbfffff, 0xff8fedcb};
  std::vector<std::byte> values(bytes);
  std::minstd_rand random(seed + 1);
  for (std::byte& value : values) value = std::byte(random() >> 8);
  if (bytes > 0) std::memcpy(values.data(), kNans.data(), std::min(bytes, sizeof(kNans)));
  return values;
}

std::vector<std::byte> sum_of(std::vector<std::byte> contribution) {
  std::ranges::transform(contribution, contribution.begin(), plus_one);
  return contribution;
}

void Sums::start(pipeline::PieceRequest piece) {
  order.push_back(piece.tensor);
  seen_.emplace(piece.tensor, piece.first);
  kept.push_back(std::move(piece));
}

void Sums::poll() {
  std::vector<pipeline::PieceRequest> pieces = std::exchange(kept, {});
  if (takes_last_first) std::ranges::reverse(pieces);
  for (pipeline::PieceRequest& piece : pieces) {
    const std::optional<absl::Status> outcome = decide == nullptr ? absl::OkStatus() : decide(piece);
    if (!outcome.has_value()) {
      kept.push_back(std::move(piece));
      continue;
    }
    if (outcome->ok()) std::ranges::transform(piece.input.bytes(), piece.output.begin(), plus_one);
    piece.input = {};
    finish(piece.id, *outcome);
  }
}

Rank::Rank(Device* device, std::shared_ptr<const plan::Plan> plan, const StageOptions& options,
           trace::Recorder* recorder)
    : device_(device), plan_(std::move(plan)), events_(device) {
  std::vector<std::unique_ptr<pipeline::Stage>> stages;
  auto stage = std::make_unique<DeviceStage>(quiet_env(), options, recorder);
  stage_ = stage.get();
  stages.push_back(std::move(stage));
  auto sums = std::make_unique<Sums>();
  sums_ = sums.get();
  stages.push_back(std::move(sums));
  pipeline_ = *pipeline::Pipeline::create(std::move(stages), this);
  EXPECT_EQ(pipeline_->on_event(pipeline::Prepare{plan_}), absl::OkStatus());
  EXPECT_EQ(pipeline_->on_event(pipeline::Commit{plan_->epoch}), absl::OkStatus());
}

// Events must not end before their streams reach them. Those of a GPU that has failed never do.
Rank::~Rank() {
  pipeline_ = nullptr;
  const absl::Time end = absl::Now() + absl::Minutes(1);
  const auto is_pending = [](const Event& event) {
    const absl::StatusOr<bool> is_done = event.is_done();
    return event.is_recorded() && is_done.ok() && !*is_done;
  };
  for (const Pushed& pushed : pushed_) {
    while ((is_pending(*pushed.ready) || is_pending(*pushed.copied)) && absl::Now() < end) {
      absl::SleepFor(absl::Microseconds(100));
    }
  }
}

Pushed& Rank::start(uint32_t tensor, CUdeviceptr input, CUdeviceptr output, CUstream stream) {
  Pushed& pushed = pushed_.emplace_back(Pushed{*events_.take(), *events_.take(), std::nullopt});
  EXPECT_EQ(device_->record(number_of(stream), *pushed.ready), absl::OkStatus());
  const size_t bytes = plan_->tensors[tensor].bytes();
  pipeline::PieceRequest request;
  request.id = pushed_.size() - 1;
  request.tensor = tensor;
  request.input = Buffer::borrow(span_of(input, bytes));
  request.output = span_of(output, bytes);
  request.access = {device_, number_of(stream), &*pushed.ready, &*pushed.copied};
  request.number = request.id;
  pipeline_->start(std::move(request));
  return pushed;
}

void Rank::hold(const Pushed& pushed, CUstream stream) {
  if (!pushed.copied->is_recorded()) return;
  EXPECT_EQ(device_->hold(number_of(stream), *pushed.copied), absl::OkStatus());
}

void Rank::on_done(uint64_t id, const absl::Status& status) {
  done_.push_back(id);
  if (id < pushed_.size()) pushed_[id].outcome = status;
}

void Rank::on_failed(const absl::Status& status) {
  failure_ = status;
  pipeline_->fail(status);
}

bool run(const std::vector<Rank*>& ranks, const std::function<bool()>& is_reached) {
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (!is_reached()) {
    for (Rank* rank : ranks) rank->poll();
    if (is_reached()) return true;
    if (absl::Now() > end) return false;
    for (Rank* rank : ranks) rank->pipeline().wait(absl::Milliseconds(1));
  }
  return true;
}

StageOnGpu::StageOnGpu(uint64_t seed) : Gpus(seed) {
  gpu = *open_cuda_device(*Driver::start(watch(driver->api())), 0);
  producer = caller->create_stream();
  consumer = caller->create_stream();
  watched() = {};
}

Rank& StageOnGpu::make_rank(std::vector<testing::TensorSpec> tensors, const StageOptions& options,
                            trace::Recorder* recorder) {
  return ranks.emplace_back(gpu.get(), testing::build_plan({.tensors = std::move(tensors)}), options, recorder);
}

CUdeviceptr StageOnGpu::make_tensor(CUstream maker, const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return 0;
  const CUdeviceptr memory = caller->allocate(bytes.size());
  caller->write(maker, memory, bytes);
  return memory;
}

std::vector<std::byte> StageOnGpu::result_of(Rank& rank, const Pushed& pushed, CUdeviceptr memory, size_t bytes) {
  if (bytes == 0) return {};
  rank.hold(pushed, consumer);
  const ConstBytes read = caller->read(consumer, memory, bytes);
  caller->synchronize(consumer);
  return {read.begin(), read.end()};
}

}  // namespace gleaner::device
