#include "common/transport/rdma/domain.h"

#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

uint64_t new_owner() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Region::Region(Domain* domain, uint32_t index, MemoryRegion memory)
    : Attachment(domain->owner_),
      domain_(domain),
      index_(index),
      number_(domain->next_number_++),
      memory_(std::move(memory)) {}

Region::~Region() {
  domain_->regions_[index_] = nullptr;
  domain_->free_.push_back(index_);
}

Domain::Domain(uint64_t job, uint64_t owner, Ledger* ledger, ProtectionDomain protection)
    : job_(job), owner_(owner), ledger_(ledger), protection_(std::move(protection)) {}

absl::StatusOr<std::shared_ptr<Domain>> Domain::create(ibv_context* device, uint64_t job, Ledger* ledger) {
  ProtectionDomain protection(ibv_alloc_pd(device));
  if (protection == nullptr) return verbs_error(errno, "can't make a protection domain");
  return std::shared_ptr<Domain>(new Domain(job, new_owner(), ledger, std::move(protection)));
}

Domain::~Domain() {
  for (size_t i = 0; i < regions_.size(); ++i) {
    if (regions_[i] != nullptr) regions_[i]->remove();
  }
}

absl::StatusOr<MemoryRegion> Domain::register_memory(MutableBytes memory, int access) {
  if (ledger_->registrations_left == 0)
    return absl::ResourceExhaustedError("can't register memory: the test allows no more");
  MemoryRegion region(ibv_reg_mr(protection_.get(), memory.data(), memory.size(), access));
  if (region == nullptr) {
    return verbs_error(errno,
                       absl::StrCat("can't register ", memory.size(),
                                    " bytes of memory (see `ulimit -l`, which has to be unlimited or well above the "
                                    "bytes that are summed at a time)"));
  }
  --ledger_->registrations_left;
  ++ledger_->counters.registrations;
  return region;
}

uint32_t Domain::take_index() {
  if (free_.empty()) {
    regions_.push_back(nullptr);
    return static_cast<uint32_t>(regions_.size() - 1);
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  return index;
}

const Region* Domain::region_of(const Buffer& buffer) {
  if (const Attachment* known = buffer.attachment(owner_); known != nullptr) {
    const auto* region = static_cast<const Region*>(known);
    return region->is_registered() ? region : nullptr;
  }
  if (!buffer.is_lasting() || (free_.empty() && regions_.size() == kMaxRegions)) return nullptr;
  absl::StatusOr<MemoryRegion> memory = register_memory(buffer.block(), kAccess);
  // A failure is recorded, too, since each attempt is expensive.
  const uint32_t index = take_index();
  auto region = std::make_unique<Region>(this, index, memory.ok() ? *std::move(memory) : nullptr);
  const Region* const made = regions_[index] = region.get();
  buffer.attach(std::move(region));
  return made->is_registered() ? made : nullptr;
}

absl::StatusOr<Buffer> Domain::stage(size_t bytes) {
  Buffer buffer = staging_.take(bytes);
  if (region_of(buffer) == nullptr) {
    // Removes the record of the failure, so that the next use of this block tries to register it again.
    if (Attachment* failed = buffer.attachment(owner_); failed != nullptr) failed->remove();
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory could be registered for a payload of ", bytes, " bytes; see `ulimit -l`"));
  }
  ++ledger_->counters.copies;
  return buffer;
}

}  // namespace gleaner::transport::rdma
