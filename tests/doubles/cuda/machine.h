// Machine holds the GPUs of the double: contexts, streams and events. The exported functions lock its mutex, which
// guards everything here, and call it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/doubles/cuda/cuda_double.h"
#include "tests/doubles/cuda/memory.h"

namespace gleaner::cuda_double {

using namespace gleaner::device;  // NOLINT: the names of the driver's API

struct Stream;

// A point of a stream: all its operations up to `position`.
struct Point {
  std::shared_ptr<Stream> stream;  // null: no point
  uint64_t position = 0;
  Clock clock;
  bool is_reached() const;
};

struct Operation {
  std::vector<Point> after;
  std::function<void(const Clock&)> run;  // gets the operation's clock, without the mutex
  uint64_t position = 0;
  Clock clock;
  void* host_data = nullptr;  // of a host function
};

// The primary context of a GPU.
struct Context {
  int ordinal = 0;
  int users = 0;                   // of cuDevicePrimaryCtxRetain()
  CUresult error = CUDA_SUCCESS;   // of a kernel; stays
  std::shared_ptr<Stream> legacy;  // the legacy default stream
};

// A thread carries out the operations in their order; see Machine::serve().
struct Stream {
  uint64_t id = 0;
  Context* context = nullptr;
  bool is_blocking = true;  // waits for the legacy default stream, and it for this one
  bool is_held = false;
  bool is_capturing = false;
  bool is_destroyed = false;
  uint64_t submitted = 0;  // operations so far
  uint64_t done = 0;       // the position of the last operation that has ended
  Clock clock;             // of the last operation
  std::deque<Operation> queue;
  bool can_go_on() const;
};

struct Event {
  Context* context = nullptr;
  Point recorded;
};

class Machine {
 public:
  Machine();
  void reset(uint64_t seed, int devices, int driver_version);

  std::mutex& mutex() { return mutex_; }

  // Queues an operation with these accesses (their stream and position are filled in), and returns its point.
  Point submit(const std::shared_ptr<Stream>& stream, std::vector<Access> accesses, Operation operation);
  // Tells that the host has seen the end of all that the clock covers.
  void see(const Clock& clock);
  // Waits until the point is reached.
  void wait(std::unique_lock<std::mutex>& lock, const Point& point);
  void hold(Stream& stream, bool is_held);
  void fail(Context& context, CUresult error);

  std::shared_ptr<Stream> create_stream(Context* context, bool is_blocking);
  void destroy_stream(CUstream handle);

  // Handles are numbers that are never used again. The finders return null for one that is unknown or was destroyed.
  CUstream add(const std::shared_ptr<Stream>& stream);
  CUevent add(const Event& event);
  std::shared_ptr<Stream> find(CUstream stream) const;
  Event* find(CUevent event);
  Context* find(CUcontext context) const;
  void destroy_event(CUevent event) { events_.erase(event); }

  bool is_capturing() const;  // a graph, on some stream
  // Returns the error that a test wants of the next call of this function.
  CUresult take_failure(const std::string& function);
  void fail_next(const std::string& function, CUresult result) { failures_[function] = result; }

  std::vector<std::unique_ptr<Context>> contexts;  // of the GPUs
  Memory memory;
  Accesses accesses;
  int version = 0;
  bool is_initialized = false;

 private:
  void serve(const std::shared_ptr<Stream>& stream);
  void pause(const Stream& stream, uint64_t position) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t seed_ = 0;
  uint64_t last_handle_ = 0;
  Clock host_;  // the operations whose end the host has seen
  std::map<CUstream, std::shared_ptr<Stream>> streams_;
  std::map<CUevent, Event> events_;
  std::map<std::string, CUresult> failures_;
  std::vector<std::unique_ptr<Context>> old_contexts_;  // before reset()
  std::vector<void*> lost_;  // data of host functions that are never called, so that LeakSanitizer sees no leak
};

Machine& machine();

// Whether this thread is in a host function, which must not call the driver.
bool& in_host_function();
// The limits of the calling thread while a graph is captured.
CUstreamCaptureMode& capture_mode();

}  // namespace gleaner::cuda_double
