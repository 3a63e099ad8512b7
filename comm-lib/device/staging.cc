#include "comm-lib/device/staging.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/status_macros.h"

namespace gleaner::device {
namespace {

constexpr size_t kGranuleBytes = 4096;  // a page, so that no two slots share one

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::create(Device* device, size_t ring_bytes) {
  GLN_ASSIGN_OR_RETURN(auto ring, device->allocate_pinned(ring_bytes));
  return std::unique_ptr<Staging>(new Staging(device, std::move(ring)));
}

Staging::Staging(Device* device, std::unique_ptr<PinnedMemory> ring)
    : device_(device), ring_memory_(std::move(ring)), ring_(ring_memory_->bytes(), kGranuleBytes) {}

absl::StatusOr<Staging::Slot> Staging::take(size_t bytes, bool must) {
  if (const auto slot = ring_.take(bytes); slot.has_value()) return Slot{*slot, false};
  if (!must) return Slot{};
  GLN_ASSIGN_OR_RETURN(const MutableBytes memory, take_beside(bytes));
  return Slot{memory, true};
}

// Takes the smallest unused block that is large enough.
absl::StatusOr<MutableBytes> Staging::take_beside(size_t bytes) {
  Block* best = nullptr;
  for (Block& block : beside_) {
    const size_t size = block.memory->bytes().size();
    if (block.is_used || size < bytes) continue;
    if (best == nullptr || size < best->memory->bytes().size()) best = &block;
  }
  if (best == nullptr) {
    GLN_ASSIGN_OR_RETURN(auto memory, device_->allocate_pinned(std::bit_ceil(std::max(bytes, kGranuleBytes))));
    best = &beside_.emplace_back(Block{std::move(memory)});
  }
  best->is_used = true;
  return best->memory->bytes().first(bytes);
}

void Staging::give_back(MutableBytes slot) {
  for (Block& block : beside_) {
    if (block.memory->bytes().data() != slot.data()) continue;
    block.is_used = false;
    return;
  }
  ring_.give_back(slot).IgnoreError();  // an error would be a slot that take() has not returned
}

size_t Staging::bytes_beside() const {
  size_t bytes = 0;
  for (const Block& block : beside_) bytes += block.memory->bytes().size();
  return bytes;
}

}  // namespace gleaner::device
