// Memory that push_pulls come from again and again. What lies in it is borrowed as parts of one lasting handle, so that
// transports which register memory do so once instead of copying each time. Belongs to one thread at a time.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "common/base/buffer.h"

namespace gleaner::runtime {

class LastingMemory {
 public:
  // Stays until remove(), and at least until the last part of it is given back. InvalidArgument: empty, or it overlaps
  // what is there already.
  absl::Status add(MutableBytes memory);
  // What add() was given at that address. NotFound: nothing; Unavailable: parts of it are in use.
  absl::Status remove(const void* begin);

  bool covers(ConstBytes bytes) const { return find(bytes) != nullptr; }
  // To be given back like Buffer::borrow(), which it is where the memory is not known.
  Buffer borrow(MutableBytes bytes) const;

 private:
  const Buffer* find(ConstBytes bytes) const;

  std::map<const std::byte*, Buffer> by_begin_;
};

}  // namespace gleaner::runtime
