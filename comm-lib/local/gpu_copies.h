// GpuCopies copies this rank's tensors between its GPU and the memory that the local ranks share. The driver pins that
// memory when the first tensor of a GPU uses it. Belongs to one thread. Once warm it allocates no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/device/access.h"
#include "comm-lib/device/copier.h"
#include "common/base/bytes.h"

namespace gleaner::local {

// The tags of work: of its end, and, if there is one, of its begin (see the functions that take them).
struct WorkTags {
  uint64_t end = 0;
  std::optional<uint64_t> begin;
};

class GpuCopies {
 public:
  // Adds memory that the ranks share. It must exist until close().
  void add(MutableBytes shared) { regions_.push_back({shared, nullptr}); }
  // Opens the device of `access`, unless it is open: a rank has one.
  absl::Status open(const device::Access& access);

  device::Device* device() const { return device_; }  // null: not open
  device::Copier& copier() const { return *copier_; }

  // Queue a copy, whose memory must stay valid until take() returns `tag`. ResourceExhausted: no memory can be pinned.
  // tags.begin: the event `ready` of `access` is done.
  absl::Status to_shared(const device::Access& access, ConstBytes from, MutableBytes to, WorkTags tags);
  absl::Status to_gpu(ConstBytes from, MutableBytes to, uint64_t tag);
  // Makes the event of `access` mark the copies that were queued, if the GPU works.
  void mark(const device::Access& access);

  // Becomes readable when a copy has ended; -1: no tensor was on a GPU.
  int descriptor() const { return copier_ == nullptr ? -1 : copier_->descriptor(); }
  // Appends the tags of the copies that have ended. An error means that the GPU has failed.
  absl::Status take(std::vector<uint64_t>& tags) { return copier_ == nullptr ? absl::OkStatus() : copier_->take(tags); }
  // Waits until all copies have ended, for 10 s at most, and unpins all memory. Returns false if copies have not ended,
  // since the program's stream never gets to the point for which they wait: the shared memory must then stay mapped.
  bool close();

 private:
  struct Region {
    MutableBytes memory;
    std::unique_ptr<device::PinnedMemory> pinned;  // null: not yet
  };
  absl::Status pin(ConstBytes part);

  device::Device* device_ = nullptr;
  std::vector<Region> regions_;
  std::unique_ptr<device::Copier> copier_;
};

}  // namespace gleaner::local
