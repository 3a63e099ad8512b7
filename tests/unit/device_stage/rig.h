// Rig of tests of DeviceStage: ranks whose pipelines have a DeviceStage over the double of CUDA, and below it a last
// stage of the test. The "sum" of a byte is the byte plus 1, so a result shows that each byte went through once.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "comm-lib/device/event_pool.h"
#include "comm-lib/device/stage/device_stage.h"
#include "comm-lib/pipeline/pipeline.h"
#include "tests/unit/device/gpus.h"
#include "tests/unit/engine/plans.h"

namespace gleaner::device {

inline constexpr uint32_t kPartition = 256 << 10;
inline constexpr uint32_t kPiece = 1 << 20;
inline constexpr size_t kMib = 1 << 20;

// Returns a tensor of `bytes` bytes, at most a partition or a multiple of partitions.
testing::TensorSpec tensor_of(size_t bytes, int32_t priority = 0);

// Returns bytes that differ from tensor to tensor, among them the bit patterns of NaNs with payloads.
std::vector<std::byte> contribution(size_t bytes, uint32_t seed);
std::vector<std::byte> sum_of(std::vector<std::byte> contribution);

// The last stage: answers the pieces that it gets.
class Sums : public pipeline::Stage {
 public:
  using Decide = std::function<std::optional<absl::Status>(const pipeline::PieceRequest&)>;

  void start(pipeline::PieceRequest piece) override;
  void poll() override;
  bool has(uint32_t tensor, uint32_t first) const { return seen_.contains({tensor, first}); }

  std::vector<uint32_t> order;    // the tensors of the pieces, in the order of start()
  Decide decide;                  // returns a piece's outcome, or nullopt to keep it; null: OK
  bool takes_last_first = false;  // answers the piece that came last first
  std::vector<pipeline::PieceRequest> kept;

 private:
  std::set<std::pair<uint32_t, uint32_t>> seen_;  // tensor and first partition
};

// One push_pull of a tensor.
struct Pushed {
  EventPool::Loan ready;
  EventPool::Loan copied;
  std::optional<absl::Status> outcome;
};

class Rank final : public pipeline::Listener {
 public:
  // `recorder`: as of DeviceStage.
  Rank(Device* device, std::shared_ptr<const plan::Plan> plan, const StageOptions& options = {},
       trace::Recorder* recorder = nullptr);
  ~Rank();

  // Starts the push_pull of a tensor whose input is made on `stream`. Its id is also its PieceRequest::number.
  Pushed& start(uint32_t tensor, CUdeviceptr input, CUdeviceptr output, CUstream stream);
  // Makes `stream` wait for the result, as the program's wait for the push_pull does.
  void hold(const Pushed& pushed, CUstream stream);
  void poll() { pipeline_->poll(); }
  bool is_idle() const { return pipeline_->idle(); }
  void fail(const absl::Status& status) { pipeline_->fail(status); }
  // Ends the stages.
  void end() { pipeline_.reset(); }

  pipeline::Pipeline& pipeline() { return *pipeline_; }
  Sums& sums() { return *sums_; }
  const DeviceStage& stage() const { return *stage_; }
  const absl::Status& failure() const { return failure_; }
  const std::vector<uint64_t>& done() const { return done_; }  // the ids of ended requests

 private:
  void on_done(uint64_t id, const absl::Status& status) override;
  void on_failed(const absl::Status& status) override;

  Device* const device_;
  const std::shared_ptr<const plan::Plan> plan_;
  EventPool events_;
  std::deque<Pushed> pushed_;
  std::vector<uint64_t> done_;
  absl::Status failure_;
  Sums* sums_ = nullptr;
  const DeviceStage* stage_ = nullptr;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
};

// Runs the ranks in turn until `is_reached`, a minute at most. Returns whether it was reached.
bool run(const std::vector<Rank*>& ranks, const std::function<bool()>& is_reached);

// Records the calls of stages to the driver.
struct Watched {
  std::vector<CUstream> streams;   // in the order in which they were made
  std::vector<size_t> pinned;      // the sizes of allocations
  std::function<void()> on_query;  // called by the next cuStreamQuery()
};
Watched& watched();

// The fixture: stages on GPU 0, and a program with a stream that makes tensors and one that uses results.

class StageOnGpu : public Gpus {
 protected:
  explicit StageOnGpu(uint64_t seed = 1);

  Rank& make_rank(std::vector<testing::TensorSpec> tensors, const StageOptions& options = {},
                  trace::Recorder* recorder = nullptr);
  CUstream to_host() const { return watched().streams[0]; }
  CUstream to_device() const { return watched().streams[2]; }  // [1] and [3] report

  // Queues the making of a tensor on `maker`, and returns its memory.
  CUdeviceptr make_tensor(CUstream maker, const std::vector<std::byte>& bytes);
  // Reads memory on a stream of the program that waits for the request.
  std::vector<std::byte> result_of(Rank& rank, const Pushed& pushed, CUdeviceptr memory, size_t bytes);

  std::unique_ptr<Device> gpu;  // the stages' GPU, which tells of calls in watched()
  CUstream producer = nullptr;  // the program's streams
  CUstream consumer = nullptr;
  std::deque<Rank> ranks;
};

}  // namespace gleaner::device
