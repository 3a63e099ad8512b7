// One job's memory as one network adapter knows it: a protection domain, and the registrations in it.
//
// Blocks of buffers are registered on first use and stay so until they end (Attachment), so that a step registers
// nothing. A domain has one job's connections only, and a key works in its domain alone: no peer of another job can use
// it, and a peer whose connection has ended has no queue pair left to use it with. (Memory windows would bind keys to
// single connections; they cost a further message per buffer and peer, and members of one job have to trust each
// other's numbers anyway.)
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/transport/rdma/verbs.h"
#include "common/transport/transport.h"

namespace gleaner::transport::rdma {

class Domain;

// A block that is registered, or that could not be.
class Region : public Attachment {
 public:
  Region(Domain* domain, uint32_t index, MemoryRegion memory);
  ~Region() override;

  bool is_registered() const { return memory_ != nullptr; }
  uint32_t local_key() const { return memory_->lkey; }
  uint32_t remote_key() const { return memory_->rkey; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_->addr); }
  uint64_t bytes() const { return memory_->length; }
  uint32_t index() const { return index_; }    // of those of its domain
  uint64_t number() const { return number_; }  // no other region has ever had it

 private:
  friend class Domain;
  Domain* const domain_;
  const uint32_t index_;
  const uint64_t number_;
  const MemoryRegion memory_;
};

class Domain {
 public:
  // What all of a transport's have in common.
  struct Ledger {
    size_t registrations_left = SIZE_MAX;  // that may still succeed; for tests
    AdapterCounters counters;
  };

  static absl::StatusOr<std::shared_ptr<Domain>> create(ibv_context* device, uint64_t job, Ledger* ledger);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  uint64_t job() const { return job_; }
  ibv_context* device() const { return protection_->context; }
  ibv_pd* get() const { return protection_.get(); }

  // The buffer's block, registered now if it was not; null: it can't be, or it does not stay long enough to be worth
  // it.
  const Region* region_of(const Buffer& buffer);
  // A registered buffer to copy to instead. ResourceExhausted: there is none.
  absl::StatusOr<Buffer> stage(size_t bytes);
  // Plain memory of our own. ResourceExhausted names the limit.
  absl::StatusOr<MemoryRegion> register_memory(MutableBytes memory, int access);

 private:
  friend class Region;
  Domain(uint64_t job, uint64_t owner, Ledger* ledger, ProtectionDomain protection);
  uint32_t take_index();

  const uint64_t job_;
  const uint64_t owner_;  // of attachments
  Ledger* const ledger_;
  const ProtectionDomain protection_;
  std::vector<Region*> regions_;  // by index; null: free
  std::vector<uint32_t> free_;
  uint64_t next_number_ = 1;
  BufferPool staging_;
};

}  // namespace gleaner::transport::rdma
