// LocalStage sums the tensors of the local ranks of one worker, before the sum goes on to the network, and copies the
// network's result back to every local rank (comm-lib/local). Only local rank 0 has a stage below. The pieces
// (pipeline/pieces.h) of a large tensor go through the stages below independently of each other.
//
// The stage takes whole tensors from above. The id of each piece that it passes on is the piece's index in Pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm-lib/local/group.h"
#include "comm-lib/pipeline/pieces.h"
#include "comm-lib/pipeline/registered_memory.h"
#include "comm-lib/pipeline/stage.h"
#include "common/trace/recorder.h"

namespace gleaner::local {

class LocalStage : public pipeline::Stage, private Events {
 public:
  // `options` has all but the secret, which the welcome brings. `kernels` must outlive the stage.
  // `recorder` must outlive it, too; null: no trace.
  LocalStage(const Env& env, const Options& options, const kernels::Kernels* kernels,
             trace::Recorder* recorder = nullptr);
  ~LocalStage() override;

  // pipeline::Stage. A Welcome with another secret begins another group.
  void start(pipeline::PieceRequest request) override;
  void on_done(uint64_t piece, const absl::Status& status) override;
  absl::Status on_event(const pipeline::Event& event) override;
  void poll() override;
  void fail(const absl::Status& status) override;
  bool has_work() const override { return group_ != nullptr && group_->has_work(); }
  bool connected() const override { return connected_; }
  bool idle() const override { return group_ == nullptr || group_->idle(); }
  std::string describe_waiting() const override;
  int descriptor() const override { return group_ == nullptr ? -1 : group_->descriptor(); }

 private:
  // A tensor that goes through the group.
  struct TensorRequest {
    uint64_t id = 0;
    uint64_t number = 0;   // of the push_pull, as PieceRequest::number
    uint32_t missing = 0;  // number of pieces that are not done
    absl::Status status;   // the first error
  };

  absl::Status open(const wire::Secret& secret);
  absl::Status register_tensors();

  // Events. A tensor of the group is a piece of a tensor of the plan.
  void on_connected() override { connected_ = true; }
  void on_reduced(uint32_t piece, ReduceOp op, MutableBytes sum, MutableBytes result) override;
  void on_done(uint32_t piece, const absl::Status& status) override;
  void on_failed(const absl::Status& status) override { report_failure(status); }
  bool traces_gpu() const override { return recorder_ != nullptr && recorder_->is_on(); }
  void on_gpu(uint32_t piece, trace::Kind point) override;

  const Env env_;
  Options options_;  // with the secret of group_
  const kernels::Kernels* const kernels_;
  trace::Recorder* const recorder_;
  std::unique_ptr<Group> group_;       // null before the first welcome
  bool connected_ = false;             // to all local ranks
  pipeline::RegisteredMemory memory_;  // memory of the group's sums and results
  pipeline::Pieces pieces_;
  std::vector<TensorRequest> requests_;  // by tensor: the latest one
};

}  // namespace gleaner::local
