// ZoneLock tells the local ranks of a worker whether another of them may still write to their zones (zone.h). Each rank
// holds a lock on the file of the group's first segment, from before it opens a zone until its GPU has ended all use of
// zones. The kernel releases the lock of a process that has ended, when no child that it forked is left.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "comm-lib/device/device.h"
#include "comm-lib/local/segment.h"
#include "common/base/descriptor.h"

namespace gleaner::local {

class ZoneLock {
 public:
  // The segment's file must be open. ResourceExhausted: no file descriptor is left. Unavailable: /proc is not mounted.
  static absl::StatusOr<std::shared_ptr<ZoneLock>> take(const Segment& segment);
  explicit ZoneLock(Descriptor file) : file_(std::move(file)) {}

  // Releases this rank's lock. is_held_by_others() still works.
  void release();
  bool is_held_by_others() const;

 private:
  const Descriptor file_;  // an open file description of its own, to which the lock belongs
};

// Keeps the memory of a zone until no other rank holds the lock, which this rank has released: the driver leaves open
// what happens to memory that is freed while another process has it open. Thread safe.
void keep_zone(std::unique_ptr<device::DeviceMemory> zone, std::shared_ptr<const ZoneLock> lock);
// Frees the zones of keep_zone() that no other rank may write to any more. Thread safe.
void free_kept_zones();

}  // namespace gleaner::local
