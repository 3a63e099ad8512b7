// RequestFlow takes the requests of one rank from their begin to their outcome: through the table of requests
// (request_table.h), the pipeline, the figures, the trace and the marks of Declarations. Belongs to the thread that
// holds the turn (io_loop.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm-lib/pipeline/pipeline.h"
#include "comm-lib/runtime/declarations.h"
#include "comm-lib/runtime/rank_state.h"
#include "comm-lib/runtime/request_table.h"
#include "comm-lib/runtime/statistics.h"
#include "common/trace/recorder.h"

namespace gleaner::runtime {

class RequestFlow {
 public:
  // All pointers must outlive this object.
  RequestFlow(const Clock* clock, const RankState* state, Declarations* declarations, Statistics* statistics,
              trace::Recorder* recorder)
      : clock_(*clock), state_(*state), declarations_(*declarations), statistics_(*statistics), recorder_(*recorder) {}

  // Sets the pipeline, before the first request.
  void set_pipeline(pipeline::Pipeline* pipeline) { pipeline_ = pipeline; }

  // Begins a request, which ends at once with an error if the rank can't be used. If no plan has its tensor, the
  // request starts with the first plan that has it.
  void begin(DeclaredRequest request);
  // Starts the waiting requests whose tensors the plan has.
  void on_plan(const plan::Plan& plan);
  // Ends a started request; OK: its output holds the result.
  void on_done(uint64_t handle, const absl::Status& status);
  // Records the outcome of a call of a group, of which the flow knows nothing else.
  void on_called(uint64_t handle, const absl::Status& outcome) { table_.refuse(handle, outcome); }
  // Ends all requests.
  void end_all(const absl::Status& status);
  // Swaps the outcomes since the last call with `outcomes`, which must be empty.
  void take_outcomes(std::vector<Outcome>& outcomes) { table_.take_outcomes(outcomes); }

  bool empty() const { return table_.empty(); }  // no request is in flight
  // Call the functions of the same names of RequestTable.
  uint64_t started(const std::string& tensor) const { return table_.started(tensor); }
  const std::vector<uint64_t>& started() const { return table_.started(); }
  std::optional<control::Waiting> overdue(absl::Duration now) const { return table_.overdue(now); }

 private:
  absl::Duration now() const { return clock_.since_start(); }
  void start(const Request& request);
  void note_end(const DeclaredRequest& ended, bool ok);
  void record(trace::Kind kind, const Request& request, absl::Duration when);

  const Clock& clock_;
  const RankState& state_;
  Declarations& declarations_;
  Statistics& statistics_;
  trace::Recorder& recorder_;
  pipeline::Pipeline* pipeline_ = nullptr;
  RequestTable table_;
};

}  // namespace gleaner::runtime
