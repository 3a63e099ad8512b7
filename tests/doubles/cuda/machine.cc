#include "tests/doubles/cuda/machine.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

namespace gleaner::cuda_double {
namespace {

template <typename Handle>
Handle handle_of(uint64_t number) {
  return reinterpret_cast<Handle>(number);
}

}  // namespace

Machine& machine() {
  static auto* const the_machine = new Machine;  // its threads run until the process ends
  return *the_machine;
}

CUstreamCaptureMode& capture_mode() {
  thread_local CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mode;
}

bool& in_host_function() {
  thread_local bool is_inside = false;
  return is_inside;
}

bool Point::is_reached() const { return stream == nullptr || stream->done >= position; }

bool Stream::can_go_on() const {
  if (queue.empty() || is_held) return false;
  const std::vector<Point>& after = queue.front().after;
  return context->error != CUDA_SUCCESS ||
         std::all_of(after.begin(), after.end(), [](const Point& point) { return point.is_reached(); });
}

Machine::Machine() { reset(0, 2, 12040); }

void Machine::reset(uint64_t seed, int devices, int driver_version) {
  seed_ = seed;
  version = driver_version;
  is_initialized = false;
  accesses = {};
  host_ = {};
  failures_.clear();
  std::move(contexts.begin(), contexts.end(), std::back_inserter(old_contexts_));
  contexts.clear();
  for (int ordinal = 0; ordinal < devices; ++ordinal) {
    contexts.push_back(std::make_unique<Context>());
    contexts.back()->ordinal = ordinal;
    contexts.back()->legacy = create_stream(contexts.back().get(), false);
  }
}

std::shared_ptr<Stream> Machine::create_stream(Context* context, bool is_blocking) {
  auto stream = std::make_shared<Stream>();
  stream->id = ++last_handle_;
  stream->context = context;
  stream->is_blocking = is_blocking;
  std::thread([this, stream] { serve(stream); }).detach();
  return stream;
}

void Machine::serve(const std::shared_ptr<Stream>& stream) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stream->can_go_on() || (stream->is_destroyed && stream->queue.empty()); });
    if (stream->queue.empty()) return;
    {
      const Operation operation = std::move(stream->queue.front());
      stream->queue.pop_front();
      const bool is_carried_out = stream->context->error == CUDA_SUCCESS;
      lock.unlock();
      if (is_carried_out) {
        pause(*stream, operation.position);
        operation.run(operation.clock);
      }
      lock.lock();
      if (!is_carried_out && operation.host_data != nullptr) lost_.push_back(operation.host_data);
      stream->done = operation.position;
    }
    changed_.notify_all();
  }
}

void Machine::pause(const Stream& stream, uint64_t position) const {
  if (seed_ == 0) return;
  const uint64_t mixed = (seed_ * 0x9E3779B97F4A7C15 + stream.id * 0xBF58476D1CE4E5B9 + position) * 0x94D049BB133111EB;
  std::this_thread::sleep_for(std::chrono::microseconds((mixed >> 40) % 8 * 25));
}

Point Machine::submit(const std::shared_ptr<Stream>& stream, std::vector<Access> touched, Operation operation) {
  const std::shared_ptr<Stream>& legacy = stream->context->legacy;
  const auto follow = [&](const std::shared_ptr<Stream>& other) {
    operation.after.push_back({other, other->submitted, other->clock});
  };
  if (stream == legacy) {
    for (const auto& [handle, other] : streams_) {
      if (other->is_blocking && other->context == stream->context) follow(other);
    }
  } else if (stream->is_blocking) {
    follow(legacy);
  }
  operation.position = ++stream->submitted;
  stream->clock.join(host_);
  for (const Point& point : operation.after) stream->clock.join(point.clock);
  for (Access& access : touched) {
    access.stream = stream->id;
    access.position = operation.position;
    accesses.add(access, stream->clock);
  }
  stream->clock.reach(stream->id, operation.position);
  operation.clock = stream->clock;
  if (!operation.run) operation.run = [](const Clock&) {};
  Point point{stream, operation.position, operation.clock};
  stream->queue.push_back(std::move(operation));
  changed_.notify_all();
  return point;
}

void Machine::see(const Clock& clock) {
  host_.join(clock);
  accesses.forget(host_);
}

void Machine::wait(std::unique_lock<std::mutex>& lock, const Point& point) {
  changed_.wait(lock, [&] { return point.is_reached(); });
  see(point.clock);
}

void Machine::hold(Stream& stream, bool is_held) {
  stream.is_held = is_held;
  changed_.notify_all();
}

void Machine::fail(Context& context, CUresult error) {
  context.error = error;
  // Nothing that is queued on this GPU happens any more.
  see(context.legacy->clock);
  for (const auto& [handle, stream] : streams_) {
    if (stream->context == &context) see(stream->clock);
  }
  changed_.notify_all();
}

void Machine::destroy_stream(CUstream handle) {
  const auto found = streams_.find(handle);
  found->second->is_destroyed = true;
  streams_.erase(found);
  changed_.notify_all();
}

CUstream Machine::add(const std::shared_ptr<Stream>& stream) {
  const auto handle = handle_of<CUstream>(stream->id);
  streams_[handle] = stream;
  return handle;
}

CUevent Machine::add(const Event& event) {
  const auto handle = handle_of<CUevent>(++last_handle_);
  events_[handle] = event;
  return handle;
}

std::shared_ptr<Stream> Machine::find(CUstream stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : found->second;
}

Event* Machine::find(CUevent event) {
  const auto found = events_.find(event);
  return found == events_.end() ? nullptr : &found->second;
}

Context* Machine::find(CUcontext context) const {
  for (const auto& known : contexts) {
    if (reinterpret_cast<CUcontext>(known.get()) == context) return known.get();
  }
  return nullptr;
}

bool Machine::is_capturing() const {
  return std::ranges::any_of(streams_, [](const auto& each) { return each.second->is_capturing; });
}

CUresult Machine::take_failure(const std::string& function) {
  const auto found = failures_.find(function);
  return found == failures_.end() ? CUDA_SUCCESS : failures_.extract(found).mapped();
}

}  // namespace gleaner::cuda_double
