// OpenRuns keeps the runs of the plan's tensors by partition: of each schedule and partition the run of its present
// step, and the run of the next step, for which another worker may be ahead. It finds the run that a frame is about,
// and checks that the frame fits the run. Pure. Once warm it allocates no memory. Belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm-lib/exchange/piece_request.h"
#include "comm-lib/executor/machine.h"
#include "comm-lib/executor/schedules.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

class OpenRuns {
 public:
  static constexpr uint32_t kNone = Run::kNone;

  // `schedules` must outlive this object, and follow the plans that apply() gets; so must `machine`, which has the
  // runs, and their `owner`.
  OpenRuns(uint32_t worker, const Schedules* schedules, Machine* machine, RunOwner* owner)
      : worker_(worker), schedules_(*schedules), machine_(*machine), owner_(owner) {
    machine_.add_queue(&starts_);
  }

  void apply(std::shared_ptr<const plan::Plan> plan);

  // Checks that this worker may start the partition's present step with this op. `refused` is updated if another worker
  // asks for another op. Partitions are numbered as in the plan.
  absl::Status check_start(uint32_t schedule, uint32_t partition, ReduceOp op, absl::Status& refused) const;
  // Returns the run of the partition's present step, which belongs to `piece` from now on.
  uint32_t start(uint32_t schedule, uint32_t partition, ReduceOp op, uint32_t piece);

  // Returns the run to which a kSlice of this size belongs, or the run that a kAwait is about. Opens the run if the
  // frame is its first. kNone: the run of a kAwait has ended. `refused` is updated if the frame has another op than the
  // run.
  absl::StatusOr<uint32_t> of_slice(const wire::Header& header, size_t payload_bytes, absl::Status& refused);
  absl::StatusOr<uint32_t> of_await(const wire::Header& header, absl::Status& refused);

  // Gives back a run whose program has ended. The next step of its partition becomes the present one.
  void end(uint32_t run);
  void clear();

  // Returns the number of runs of the partition that have ended, by all schedules.
  uint64_t steps(uint32_t partition) const;

 private:
  struct Partition {
    uint64_t step = 0;      // number of runs that have ended
    uint32_t run = kNone;   // the run of this step
    uint32_t next = kNone;  // the run of the next step, while the run of this step is in flight
  };
  // The place of the run that a frame is about.
  absl::StatusOr<uint32_t*> find_place(const wire::Header& header);
  uint32_t open(uint32_t schedule, uint32_t partition, uint64_t step, ReduceOp op, uint32_t named_by);
  bool has_ended(const wire::Header& header) const;

  const uint32_t worker_;
  const Schedules& schedules_;
  Machine& machine_;
  RunOwner* const owner_;
  StartQueue starts_;
  std::shared_ptr<const plan::Plan> plan_;
  // By index of the schedule in the plan, then by index of the partition; empty for a schedule that sums no tensor.
  std::vector<std::vector<Partition>> partitions_;
};

}  // namespace gleaner::executor
