// Pipeline is the list of stages through which a rank's pieces go. The first stage is next to the rank, the last one
// next to the network. A stage is added by one more element of the list.
//
// Pieces go from the first stage to the last, and their results back. Events, poll() and fail() go from the last stage
// to the first: the network stops using the memory of a stage above it before that stage releases the memory.
//
// The pipeline holds the plan in force and the plan that is prepared to replace it, for all stages.
//
// Threads: a Pipeline belongs to one thread. Other threads may call wake(). While the pipeline's thread is in wait(),
// one other thread may call memory() and, if starts_on_any_thread(), start(), advance() and has_work().
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "comm-lib/pipeline/registered_memory.h"
#include "comm-lib/pipeline/stage.h"
#include "common/base/waker.h"

namespace gleaner::pipeline {

class Pipeline {
 public:
  // `stages` has at least one stage. `listener` must outlive the pipeline. ResourceExhausted: no descriptor is left.
  static absl::StatusOr<std::unique_ptr<Pipeline>> create(std::vector<std::unique_ptr<Stage>> stages,
                                                          Listener* listener);
  ~Pipeline();

  // Starts a piece, whose memory stays valid until Listener::on_done().
  void start(PieceRequest piece) { stages_.front()->start(std::move(piece)); }
  absl::Status on_event(const Event& event);
  void poll();
  void advance();
  void fail(const absl::Status& status);

  // Waits up to `timeout` until poll() has something to do, or wake() is called.
  void wait(absl::Duration timeout);
  void wake();

  // These combine the values of all stages; Stage documents them.
  bool has_work() const;
  bool connected() const;
  bool idle() const;
  bool may_leave() const;
  bool starts_on_any_thread() const { return starts_on_any_thread_; }
  // Returns the text of the first stage that is not connected, or else of the last stage.
  std::string describe_waiting() const;

  // Returns the plan in force; null before the first commit.
  const std::shared_ptr<const plan::Plan>& plan() const { return plan_; }
  // Returns the memory that the rank's program has registered; inputs of pieces are borrowed from there.
  RegisteredMemory& memory() { return memory_; }

 private:
  Pipeline(std::vector<std::unique_ptr<Stage>> stages, Listener* listener);
  absl::Status take_up(uint32_t epoch);

  std::vector<std::unique_ptr<Stage>> stages_;
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> plan_;
  RegisteredMemory memory_;
  bool starts_on_any_thread_ = true;
  Waiter* waiter_ = nullptr;         // of a stage
  std::unique_ptr<Waker> waker_;     // if no stage has a waiter
  std::vector<pollfd> descriptors_;  // used by wait() only
};

}  // namespace gleaner::pipeline
