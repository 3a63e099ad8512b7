#include "comm-lib/local/zone_lock.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace gleaner::local {
namespace {

struct KeptZone {
  std::unique_ptr<device::DeviceMemory> memory;
  std::shared_ptr<const ZoneLock> lock;
};

struct KeptZones {
  absl::Mutex mutex;
  std::vector<KeptZone> zones ABSL_GUARDED_BY(mutex);
};

KeptZones& kept_zones() {
  static auto* const kept = new KeptZones;  // never destroyed, since the driver may end before
  return *kept;
}

struct flock lock_of_type(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ZoneLock>> ZoneLock::take(const Segment& segment) {
  // A duplicate would share its lock with the ranks that got the file from this one.
  Descriptor file(open(absl::StrCat("/proc/self/fd/", segment.file()).c_str(), O_RDONLY | O_CLOEXEC));
  struct flock lock = lock_of_type(F_RDLCK);
  if (file.valid() && fcntl(file.get(), F_OFD_SETLK, &lock) == 0) return std::make_shared<ZoneLock>(std::move(file));
  const std::string message = absl::StrCat("can't lock the memory of the local ranks: ", std::strerror(errno));
  return errno == EMFILE || errno == ENFILE ? absl::ResourceExhaustedError(message) : absl::UnavailableError(message);
}

void ZoneLock::release() {
  struct flock lock = lock_of_type(F_UNLCK);
  fcntl(file_.get(), F_OFD_SETLK, &lock);
}

bool ZoneLock::is_held_by_others() const {
  struct flock lock = lock_of_type(F_WRLCK);
  return fcntl(file_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void keep_zone(std::unique_ptr<device::DeviceMemory> zone, std::shared_ptr<const ZoneLock> lock) {
  const absl::MutexLock guard(&kept_zones().mutex);
  kept_zones().zones.push_back({std::move(zone), std::move(lock)});
}

void free_kept_zones() {
  std::vector<KeptZone> freed;  // after the mutex is released, since the driver may wait for the GPU
  KeptZones& kept = kept_zones();
  const absl::MutexLock guard(&kept.mutex);
  const auto free = std::stable_partition(kept.zones.begin(), kept.zones.end(),
                                          [](const KeptZone& zone) { return zone.lock->is_held_by_others(); });
  freed.assign(std::make_move_iterator(free), std::make_move_iterator(kept.zones.end()));
  kept.zones.erase(free, kept.zones.end());
}

}  // namespace gleaner::local
