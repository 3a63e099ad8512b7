// EventPool reuses the events of one device, so that a warm program makes none. Thread safe: a caller's thread may take
// an event that the I/O thread gives back.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "comm-lib/device/device.h"
#include "common/base/slots.h"

namespace gleaner::device {

class EventPool {
 public:
  // An event on loan, which the destructor gives back. All streams that are to wait for the event must have been told
  // so by then; it need not be done. The pool must outlive it, and
  // end after the work before its events.
  class Loan {
   public:
    Loan(Loan&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_), event_(other.event_) {}
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (pool_ != nullptr) pool_->give_back(slot_);
    }
    Event& operator*() const { return *event_; }
    Event* operator->() const { return event_; }

   private:
    friend class EventPool;
    Loan(EventPool* pool, uint32_t slot, Event* event) : pool_(pool), slot_(slot), event_(event) {}
    EventPool* pool_;
    uint32_t slot_;
    Event* event_;
  };

  // `device` must outlive the pool.
  explicit EventPool(Device* device) : device_(device) {}

  // Returns an event that was not recorded.
  absl::StatusOr<Loan> take() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of events that the pool has made.
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void give_back(uint32_t slot) ABSL_LOCKS_EXCLUDED(mutex_);

  Device* const device_;
  mutable absl::Mutex mutex_;
  Slots<std::unique_ptr<Event>> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::device
