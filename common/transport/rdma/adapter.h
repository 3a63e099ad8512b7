// Adapter is an RDMA adapter (NIC) that a transport uses: its completion channel, and a protection domain per job.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/verbs.h"
#include "common/transport/stream/source.h"

namespace gleaner::transport::rdma {

class Transport;

class Adapter : public stream::Source {
 public:
  // `device` stays open as long as the process lives: librdmacm owns it. The transport then handles the adapter's
  // events.
  static absl::StatusOr<std::unique_ptr<Adapter>> create(Transport* transport, ibv_context* device,
                                                         Domain::Ledger* ledger);

  ibv_context* device() const { return device_; }
  ibv_comp_channel* channel() const { return channel_.get(); }
  bool is_gone() const { return gone_; }
  // Returns the domain of the job. The first call makes it; forget_jobs() drops it.
  absl::StatusOr<std::shared_ptr<Domain>> domain_of(uint64_t job);
  // Makes a domain for a peer whose job this side does not know. Each call makes another one.
  absl::StatusOr<std::shared_ptr<Domain>> make_private_domain();
  // Drops the domains that have no connections and whose job is no longer known.
  template <typename IsKnown>
  void forget_jobs(IsKnown is_known) {
    std::erase_if(domains_, [&](const auto& entry) { return entry.second.use_count() == 1 && !is_known(entry.first); });
  }

 private:
  Adapter(Transport* transport, ibv_context* device, Domain::Ledger* ledger, CompletionChannel channel);
  void on_events(uint32_t events) override;

  Transport* const transport_;
  ibv_context* const device_;
  Domain::Ledger* const ledger_;
  const CompletionChannel channel_;
  std::map<uint64_t, std::shared_ptr<Domain>> domains_;  // by job
  bool gone_ = false;
};

}  // namespace gleaner::transport::rdma
