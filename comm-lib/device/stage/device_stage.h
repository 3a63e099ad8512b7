// DeviceStage is the stage of a rank whose tensors may be in the memory of a GPU. It cuts such a tensor into pieces
// (pipeline/pieces.h), and the pieces of all tensors go through it beside each other:
//
//   start(tensor) ─▶ until it is ready ─▶ waiting, by priority ─▶ copy to the host ─▶ next().start(piece) ─▶ network
//   finish(tensor) ◀──── last copy queued ◀──── copy to the GPU ◀──── on_done(piece) ◀──────────────────── result
//
// A piece has a slot of pinned memory from its copy to the host until the end of its copy to the GPU. Requests in the
// host's memory pass the stage unchanged.
//
// A request is finished when its last copy to the GPU is queued and Access::copied marks it: the program's stream waits
// for that copy, and no thread does. While a trace is on, the recorder has the begin and the end of each copy.
//
// The limit of memory can't stall the job. Ranks may start tensors in different orders, so each rank's slots could be
// full of tensors that another rank has no slot for. Therefore, if no slot has come back for a while, a tensor of which
// no piece has a slot gets one beside the ring. All ranks take the pieces of a tensor in the same order, so the first
// piece that is not done has a slot on each of them sooner or later.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "comm-lib/device/copier.h"
#include "comm-lib/device/staging.h"
#include "comm-lib/pipeline/pieces.h"
#include "comm-lib/pipeline/registered_memory.h"
#include "comm-lib/pipeline/stage.h"
#include "common/base/env.h"
#include "common/base/slots.h"
#include "common/trace/recorder.h"

namespace gleaner::device {

struct StageOptions {
  uint32_t worker = 0;
  uint64_t window_bytes = 0;                         // as for plan::window_bytes(), which decides the size of the ring
  absl::Duration drain_timeout = absl::Seconds(10);  // limit of the destructor's wait for copies
};

class DeviceStage : public pipeline::Stage {
 public:
  // `recorder` must outlive the stage; null: no trace.
  DeviceStage(const Env& env, const StageOptions& options, trace::Recorder* recorder = nullptr)
      : env_(env), options_(options), recorder_(recorder) {}
  ~DeviceStage() override;

  // pipeline::Stage. All requests in the memory of GPUs must have the same Access::device, which outlives the stage.
  // Other threads may start requests in the host's memory.
  void start(pipeline::PieceRequest request) override;
  void on_done(uint64_t id, const absl::Status& status) override;
  absl::Status on_event(const pipeline::Event& event) override;
  void poll() override;
  void fail(const absl::Status& status) override;
  bool idle() const override { return in_flight_ == 0; }
  int descriptor() const override { return copier_ == nullptr ? -1 : copier_->descriptor(); }
  bool starts_on_any_thread() const override { return true; }

  // Returns the number of ready tensors with pieces that have not begun.
  size_t waiting() const { return waiting_.size(); }
  // Returns the bytes of the copies to the host that are queued.
  size_t queued_to_host() const { return bytes_to_host_; }

 private:
  // The request of a tensor.
  struct Tensor {
    pipeline::PieceRequest request;
    uint32_t next = 0;        // the first piece that has not begun, counted within the tensor
    uint32_t missing = 0;     // number of pieces whose results are not there
    uint32_t with_slots = 0;  // number of pieces that have a slot
    bool has_copies = false;  // copies to the GPU were queued
    absl::Status status;      // the first error
  };
  // Work of the GPU whose end the stage awaits.
  enum class Kind : uint8_t { kTensor, kCopyToHost, kCopyToGpu };  // kTensor: the program's stream makes it
  struct Work {
    Kind kind = Kind::kTensor;
    uint32_t index = 0;   // of the tensor or piece
    uint64_t number = 0;  // of the push_pull, as PieceRequest::number: a later one may have begun when a copy ends
    MutableBytes slot;
  };

  absl::Status begin(pipeline::PieceRequest& request);
  absl::Status await_tensor(uint32_t tensor);
  void give_up(const absl::Status& status);
  absl::Status open(Device* device);
  void feed();
  absl::StatusOr<bool> feed(uint32_t tensor);
  absl::StatusOr<MutableBytes> take_slot(const Tensor& tensor, size_t bytes);
  void on_ended(const Work& work);
  void on_ready(uint32_t tensor);
  void on_copied_to_host(uint32_t piece, MutableBytes slot);
  void record(trace::Kind kind, uint64_t number, uint32_t piece) const;
  uint32_t await(const Work& work);
  absl::Status copy_back(uint32_t piece);
  void release(uint32_t tensor, MutableBytes slot);
  void end(Tensor& tensor);

  const Env env_;
  const StageOptions options_;
  trace::Recorder* const recorder_;
  pipeline::Pieces pieces_;
  std::vector<Tensor> tensors_;      // by tensor: the latest request
  std::vector<MutableBytes> slots_;  // by piece: of the piece in flight
  std::vector<uint32_t> waiting_;    // ready tensors with pieces that have not begun, the most urgent first
  uint32_t in_flight_ = 0;           // number of requests
  size_t bytes_to_host_ = 0;         // of the copies to the host that are queued
  bool failed_ = false;
  absl::Duration slot_returned_at_;    // or given out beside the ring
  std::unique_ptr<Staging> staging_;   // null, as copier_: no request was in the memory of a GPU
  pipeline::RegisteredMemory memory_;  // the ring
  Slots<Work> work_;                   // by tag
  std::vector<uint64_t> tags_;
  std::unique_ptr<Copier> copier_;
};

}  // namespace gleaner::device
