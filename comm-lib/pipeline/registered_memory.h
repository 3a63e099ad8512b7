// RegisteredMemory holds memory that is registered for the inputs of many requests. It borrows inputs in this memory as
// parts of one lasting handle. So transports that register memory with a device do so once, instead of copying each
// input. Belongs to one thread at a time.
#pragma once

#include <map>

#include "absl/status/status.h"
#include "common/base/buffer.h"

namespace gleaner::pipeline {

class RegisteredMemory {
 public:
  // Adds memory, which must exist until remove() succeeds. InvalidArgument: it is empty, or overlaps memory that was
  // added.
  absl::Status add(MutableBytes memory);
  // Removes memory that was passed to add(), by its address. NotFound: there is no such memory. Unavailable: parts of
  // it are in use.
  absl::Status remove(const void* begin);

  bool covers(ConstBytes bytes) const { return find(bytes) != nullptr; }
  // Borrows `bytes` as a part of the memory that covers them, or else by Buffer::borrow().
  Buffer borrow(MutableBytes bytes) const;

 private:
  const Buffer* find(ConstBytes bytes) const;

  std::map<const std::byte*, Buffer> by_begin_;
};

}  // namespace gleaner::pipeline
