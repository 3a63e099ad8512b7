// Implements Abseil's blocking primitives with pthreads. Only executables of the TSan build link this file.
//
// Debian's libabsl is not compiled for TSan, so TSan would not see the ordering by absl::Mutex and would report each
// guarded variable as a race. TSan understands pthreads. The definitions here take precedence over those of the shared
// library, in Gleaner's code and in libgrpc. Reader locks are exclusive, which is stricter than Abseil. TSan does not
// check that a primitive is destroyed after its last use, because the reference count that ensures it may be in a
// library that is not compiled for TSan. Written for Abseil 20220623 (Debian 12).
#include <pthread.h>

#include <cstdint>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

// Functions of TSan's runtime, which no header declares.
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);

namespace {

// The state of an absl::Mutex. The mutex's single word points to it from the first use on.
struct PosixMutex {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t unlocked = PTHREAD_COND_INITIALIZER;
  int waiting = 0;  // threads that wait in await(); guarded by mutex
};

struct PosixCondVar {
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
};

template <typename T>
T* resolve(std::atomic<intptr_t>& word) {
  intptr_t seen = word.load(std::memory_order_acquire);
  if (seen == 0) {
    T* made = new T;
    if (word.compare_exchange_strong(seen, reinterpret_cast<intptr_t>(made), std::memory_order_acq_rel)) return made;
    delete made;
  }
  return reinterpret_cast<T*>(seen);
}

template <typename T>
void destroy(const std::atomic<intptr_t>& word) {
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  delete reinterpret_cast<T*>(word.load(std::memory_order_acquire));
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}

void unlock(PosixMutex* mutex) {
  if (mutex->waiting > 0) pthread_cond_broadcast(&mutex->unlocked);
  pthread_mutex_unlock(&mutex->mutex);
}

// Waits for `condition`; returns false at the deadline. The caller holds the mutex before and after.
bool wait(pthread_cond_t* condition, PosixMutex* mutex, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return pthread_cond_wait(condition, &mutex->mutex) == 0;
  const timespec until = absl::ToTimespec(deadline);
  return pthread_cond_timedwait(condition, &mutex->mutex, &until) == 0;
}

bool await(PosixMutex* mutex, const absl::Condition& condition, absl::Time deadline) {
  while (!condition.Eval()) {
    if (mutex->waiting > 0) pthread_cond_broadcast(&mutex->unlocked);  // conditions of other threads may hold now
    ++mutex->waiting;
    const bool in_time = wait(&mutex->unlocked, mutex, deadline);
    --mutex->waiting;
    if (!in_time) return condition.Eval();
  }
  return true;
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

Mutex::~Mutex() { destroy<PosixMutex>(mu_); }
void Mutex::Lock() { pthread_mutex_lock(&resolve<PosixMutex>(mu_)->mutex); }
void Mutex::Unlock() { unlock(resolve<PosixMutex>(mu_)); }
bool Mutex::TryLock() { return pthread_mutex_trylock(&resolve<PosixMutex>(mu_)->mutex) == 0; }
void Mutex::ReaderLock() { Lock(); }
void Mutex::ReaderUnlock() { Unlock(); }
bool Mutex::ReaderTryLock() { return TryLock(); }
void Mutex::AssertHeld() const {}
void Mutex::AssertReaderHeld() const {}
void Mutex::AssertNotHeld() const {}
void Mutex::ForgetDeadlockInfo() {}
void Mutex::EnableDebugLog(const char*) {}
void Mutex::EnableInvariantDebugging(void (*)(void*), void*) {}

void Mutex::Await(const Condition& condition) { AwaitWithDeadline(condition, InfiniteFuture()); }
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return AwaitWithDeadline(condition, Now() + timeout);
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  return await(resolve<PosixMutex>(mu_), condition, deadline);
}
void Mutex::LockWhen(const Condition& condition) { LockWhenWithDeadline(condition, InfiniteFuture()); }
bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  return LockWhenWithDeadline(condition, Now() + timeout);
}
bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  Lock();
  return AwaitWithDeadline(condition, deadline);
}
void Mutex::ReaderLockWhen(const Condition& condition) { LockWhen(condition); }
bool Mutex::ReaderLockWhenWithTimeout(const Condition& condition, Duration timeout) {
  return LockWhenWithTimeout(condition, timeout);
}
bool Mutex::ReaderLockWhenWithDeadline(const Condition& condition, Time deadline) {
  return LockWhenWithDeadline(condition, deadline);
}

CondVar::~CondVar() { destroy<PosixCondVar>(cv_); }
void CondVar::Wait(Mutex* mutex) { WaitWithDeadline(mutex, InfiniteFuture()); }
bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) { return WaitWithDeadline(mutex, Now() + timeout); }
bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  PosixMutex* held = resolve<PosixMutex>(mutex->mu_);
  if (held->waiting > 0) pthread_cond_broadcast(&held->unlocked);
  return !wait(&resolve<PosixCondVar>(cv_)->changed, held, deadline);
}
void CondVar::Signal() { pthread_cond_signal(&resolve<PosixCondVar>(cv_)->changed); }
void CondVar::SignalAll() { pthread_cond_broadcast(&resolve<PosixCondVar>(cv_)->changed); }
void CondVar::EnableDebugLog(const char*) {}

void Notification::Notify() {
  MutexLock lock(&mutex_);
  notified_yet_.store(true, std::memory_order_release);
}
Notification::~Notification() { MutexLock lock(&mutex_); }
void Notification::WaitForNotification() const { WaitForNotificationWithDeadline(InfiniteFuture()); }
bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  return WaitForNotificationWithDeadline(Now() + timeout);
}
bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  const bool notified = mutex_.LockWhenWithDeadline(Condition(&HasBeenNotifiedInternal, &notified_yet_), deadline);
  mutex_.Unlock();
  return notified;
}

BlockingCounter::BlockingCounter(int initial_count)
    : count_(initial_count), num_waiting_(0), done_(initial_count == 0) {}
bool BlockingCounter::DecrementCount() {
  if (count_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  MutexLock lock(&lock_);
  done_ = true;
  return true;
}
void BlockingCounter::Wait() {
  lock_.LockWhen(Condition(&done_));
  lock_.Unlock();
}

ABSL_NAMESPACE_END
}  // namespace absl
