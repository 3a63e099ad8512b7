// Domain is one job's memory on one adapter: a protection domain, and the memory regions registered in it.
//
// The memory block behind a buffer is registered at its first use and stays registered until it is freed (Attachment in
// buffer.h), so a warm job registers no memory in a step.
//
// A domain contains the queue pairs of one job only, and a remote key is valid in its own domain only. So a peer of
// another job can't use the key, and a peer whose connection has ended has no queue pair left with which it could use
// the key. Memory windows would bind keys to single connections. But they cost one more message per buffer and peer,
// and the members of one job have to trust each other's numbers anyway.
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

// A memory block that is registered with the adapter, or whose registration has failed.
class Region : public Attachment {
 public:
  Region(Domain* domain, uint32_t index, MemoryRegion memory);
  ~Region() override;

  bool is_registered() const { return memory_ != nullptr; }
  uint32_t local_key() const { return memory_->lkey; }
  uint32_t remote_key() const { return memory_->rkey; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_->addr); }
  uint64_t bytes() const { return memory_->length; }
  uint32_t index() const { return index_; }    // unique among the domain's regions; used again after the region's end
  uint64_t number() const { return number_; }  // unique among all regions that the domain has had

 private:
  friend class Domain;
  Domain* const domain_;
  const uint32_t index_;
  const uint64_t number_;
  const MemoryRegion memory_;
};

class Domain {
 public:
  // Shared by all domains of a transport.
  struct Ledger {
    size_t registrations_left = SIZE_MAX;  // number of registrations that may still succeed; for tests
    AdapterCounters counters;
  };

  static absl::StatusOr<std::shared_ptr<Domain>> create(ibv_context* device, uint64_t job, Ledger* ledger);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  uint64_t job() const { return job_; }
  ibv_context* device() const { return protection_->context; }
  ibv_pd* get() const { return protection_.get(); }

  // Returns the region of the buffer's block, and registers the block if it is not registered yet. Null: the block
  // can't be registered, or lives too briefly for a registration to pay (Buffer::is_lasting()).
  const Region* region_of(const Buffer& buffer);
  // Returns a registered buffer for a copy of a payload that is not registered. ResourceExhausted: there is no such
  // buffer.
  absl::StatusOr<Buffer> stage(size_t bytes);
  // Registers memory that does not belong to a Buffer. The message of ResourceExhausted names the limit.
  absl::StatusOr<MemoryRegion> register_memory(MutableBytes memory, int access);

 private:
  friend class Region;
  Domain(uint64_t job, uint64_t owner, Ledger* ledger, ProtectionDomain protection);
  uint32_t take_index();

  const uint64_t job_;
  const uint64_t owner_;  // Attachment::key() of the domain's regions
  Ledger* const ledger_;
  const ProtectionDomain protection_;
  std::vector<Region*> regions_;  // by index; null: free
  std::vector<uint32_t> free_;
  uint64_t next_number_ = 1;
  BufferPool staging_;
};

}  // namespace gleaner::transport::rdma
