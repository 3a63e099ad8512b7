#include "comm-lib/device/kept.h"

#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace gleaner::device {
namespace {

struct Kept {
  absl::Mutex mutex;
  std::vector<std::shared_ptr<void>> objects ABSL_GUARDED_BY(mutex);
};

}  // namespace

void keep(std::shared_ptr<void> in_use) {
  static auto* const kept = new Kept;  // never destroyed
  const absl::MutexLock lock(&kept->mutex);
  kept->objects.push_back(std::move(in_use));
}

}  // namespace gleaner::device
