// ObjectPool holds objects that are used again, so that no memory is allocated once the pool is warm. The pool owns
// them.
#pragma once

#include <memory>
#include <vector>

namespace gleaner::engine {

template <typename T>
class ObjectPool {
 public:
  // Returns an object that is not in use, in the state in which it was given back. If there is none, returns a copy of
  // `blank`.
  T* take(const T& blank) {
    if (free_.empty()) {
      all_.push_back(std::make_unique<T>(blank));
      free_.reserve(all_.size());
      return all_.back().get();
    }
    T* object = free_.back();
    free_.pop_back();
    return object;
  }

  void give_back(T* object) { free_.push_back(object); }

 private:
  std::vector<std::unique_ptr<T>> all_;
  std::vector<T*> free_;
};

}  // namespace gleaner::engine
