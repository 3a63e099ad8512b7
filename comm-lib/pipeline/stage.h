// Stage is one stage of a rank's pipeline (pipeline.h). A stage gets pieces of tensors from the stage above it, or from
// the rank, works on them, and passes pieces on to the stage below it. The last stage makes the results, which come
// back the same way.
//
//   stage above ── start(piece) ──▶ this stage ── next().start(piece) ──▶ stage below
//   stage above ◀── finish(id) ──── this stage ◀──── on_done(id) ──────── stage below
//
// The functions of this class make a stage that passes each piece on and each result back unchanged. A derived stage
// overrides the functions that concern it. It may pass on other pieces than it gets: in another order, several pieces
// for one, or one for several. It chooses the ids of the pieces that it passes on; on_done() returns these ids.
//
// Threads: a Stage belongs to the pipeline's thread (see Pipeline). A stage may keep a thread of its own for its work;
// such a thread makes descriptor() readable, and poll() takes its results. Once warm, a partition costs no allocation,
// lock or needless system call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/device/access.h"
#include "comm-lib/exchange/piece_request.h"
#include "comm-lib/pipeline/event.h"
#include "common/plan/plan.h"

namespace gleaner::pipeline {

// A piece on its way to the network. Exchanges know only memory of the host, so the last stage takes no other.
struct PieceRequest : exchange::PieceRequest {
  device::Access access;
  uint64_t number =
      0;  // for traces: the number of the tensor's earlier push_pulls, set above the stage that cuts pieces
};

// Receives the pieces that a stage has finished.
class Above {
 public:
  // The piece is done; OK: its output holds the result. May be called inside start() if the piece can't start.
  virtual void on_done(uint64_t id, const absl::Status& status) = 0;

 protected:
  ~Above() = default;
};

// Receives the callbacks of a pipeline.
class Listener : public Above {
 public:
  // A stage can't go on; the listener calls Pipeline::fail().
  virtual void on_failed(const absl::Status& status) = 0;

 protected:
  ~Listener() = default;
};

// Waits for the events of a stage in a better way than for Stage::descriptor() to be readable: Waiter may spin before
// it sleeps, or save a system call.
class Waiter {
 public:
  // Waits up to `timeout` until poll() of the stage has something to do, or wake() is called.
  virtual void wait(absl::Duration timeout) = 0;
  // Spins before the caller waits up to `timeout` for the descriptors of several stages. Returns true if poll() has
  // something to do. After false the stage's descriptor is readable as soon as wait() would return.
  virtual bool spin_before_wait(absl::Duration timeout) = 0;
  // Ends the current wait, or else the next one. Any thread.
  virtual void wake() = 0;

 protected:
  ~Waiter() = default;
};

class Stage : public Above {
 public:
  virtual ~Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Starts a piece. Its memory stays valid until the stage has finished the piece.
  virtual void start(PieceRequest piece) { next().start(std::move(piece)); }
  // A piece that this stage passed on is done.
  void on_done(uint64_t id, const absl::Status& status) override { finish(id, status); }

  // Takes up an event of the job. event.h says what an error means; some events have none.
  virtual absl::Status on_event(const Event& /*event*/) { return absl::OkStatus(); }
  // Handles all that has arrived, and does the work that can be done now.
  virtual void poll() {}
  // Passes on the pieces that start() has begun, as far as that needs no wait.
  virtual void advance() {}
  // Ends the stage's work with an error, and stops to use the memory of all pieces. The stage may finish its pieces
  // with the error, but need not: the rank ends every request itself.
  virtual void fail(const absl::Status& /*status*/) {}

  virtual bool has_work() const { return false; }    // poll() has work that needs no wait
  virtual bool connected() const { return true; }    // to all that the stage needs under the plan in force
  virtual bool idle() const { return true; }         // the stage has nothing that another rank or member needs
  virtual bool may_leave() const { return idle(); }  // the same, for a rank that begins no further request
  virtual std::string describe_waiting() const { return ""; }  // names those that the stage waits for, for messages

  // Returns a descriptor that is readable when poll() has something to do; -1: none.
  virtual int descriptor() const { return -1; }
  // Returns the stage's own way to wait; null: none. At most one stage of a pipeline has one, and a descriptor, too.
  virtual Waiter* waiter() { return nullptr; }
  // Returns whether another thread may call start(), advance() and has_work() while the pipeline's thread waits.
  virtual bool starts_on_any_thread() const { return false; }

 protected:
  Stage() = default;

  Stage& next() { return *next_; }  // not on the last stage
  bool is_last() const { return next_ == nullptr; }
  void finish(uint64_t id, const absl::Status& status) { above_->on_done(id, status); }
  // Reports that the stage can't go on. fail() follows, perhaps inside this call.
  void report_failure(const absl::Status& status) { listener_->on_failed(status); }
  // Returns the plan in force: in on_event(Commit), already the plan of that epoch. Null before the first commit.
  const std::shared_ptr<const plan::Plan>& plan() const { return *plan_; }

 private:
  friend class Pipeline;

  Above* above_ = nullptr;
  Stage* next_ = nullptr;
  Listener* listener_ = nullptr;
  const std::shared_ptr<const plan::Plan>* plan_ = nullptr;
};

}  // namespace gleaner::pipeline
