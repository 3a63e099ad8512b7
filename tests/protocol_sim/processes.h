// Processes that share the work of the simulator. They are processes, and no threads, since the fault points of
// common/base/faults.h belong to one thread, and since a mutation may cause a crash.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace gleaner::sim {

// Returns the number of processors on which this process may run.
size_t processors();

// Calls work(i) for each i below `count`, each in a process of its own, in all of which at most `jobs` run at the same
// time. Returns how each of them ended, as waitpid(2) tells; nothing if a process could not be started.
std::optional<std::vector<int>> run_processes(size_t count, size_t jobs, const std::function<void(size_t)>& work);

// Elements that run_processes() shares with its caller. All bytes of an element are 0 at first.
template <typename T>
class Shared {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  explicit Shared(size_t size)
      : memory_(mmap(nullptr, size * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        elements_(static_cast<T*>(memory_), memory_ == MAP_FAILED ? 0 : size) {}
  ~Shared() {
    if (memory_ != MAP_FAILED) munmap(memory_, elements_.size_bytes());
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  std::span<T> elements() const { return elements_; }  // empty: there is not enough memory

 private:
  void* const memory_;
  const std::span<T> elements_;
};

}  // namespace gleaner::sim
