#include "comm-lib/pipeline/registered_memory.h"

#include <iterator>

namespace gleaner::pipeline {

absl::Status RegisteredMemory::add(MutableBytes memory) {
  if (memory.empty()) return absl::InvalidArgumentError("the memory to register has no bytes");
  const auto next = by_begin_.lower_bound(memory.data());
  const bool reaches_next = next != by_begin_.end() && memory.data() + memory.size() > next->first;
  const bool is_reached =
      next != by_begin_.begin() && std::prev(next)->first + std::prev(next)->second.size() > memory.data();
  if (reaches_next || is_reached) {
    return absl::InvalidArgumentError("this memory, or a part of it, is registered already");
  }
  by_begin_.emplace(memory.data(), Buffer::borrow_lasting(memory));
  return absl::OkStatus();
}

absl::Status RegisteredMemory::remove(const void* begin) {
  const auto found = by_begin_.find(static_cast<const std::byte*>(begin));
  if (found == by_begin_.end()) return absl::NotFoundError("no memory is registered at this address");
  if (!found->second.sole_owner()) return absl::UnavailableError("push_pulls of this memory are in flight");
  by_begin_.erase(found);
  return absl::OkStatus();
}

const Buffer* RegisteredMemory::find(ConstBytes bytes) const {
  const auto next = by_begin_.upper_bound(bytes.data());
  if (next == by_begin_.begin()) return nullptr;
  const Buffer& before = std::prev(next)->second;
  const std::byte* const end = std::prev(next)->first + before.size();
  return bytes.data() + bytes.size() <= end ? &before : nullptr;
}

Buffer RegisteredMemory::borrow(MutableBytes bytes) const {
  const Buffer* const whole = find(bytes);
  return whole == nullptr ? Buffer::borrow(bytes) : whole->borrow_part(bytes);
}

}  // namespace gleaner::pipeline
