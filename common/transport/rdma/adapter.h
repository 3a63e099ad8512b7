// An adapter that a transport uses: where its completions are told, and its domains.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/verbs.h"
#include "common/transport/remote/source.h"

namespace gleaner::transport::rdma {

class Transport;

class Adapter : public remote::Source {
 public:
  // `device` stays open as long as the process: librdmacm has it. Events come to the transport from then on.
  static absl::StatusOr<std::unique_ptr<Adapter>> create(Transport* transport, ibv_context* device,
                                                         Domain::Ledger* ledger);

  ibv_context* device() const { return device_; }
  ibv_comp_channel* channel() const { return channel_.get(); }
  bool is_gone() const { return gone_; }
  // The job's, made now if there is none; of jobs that have left, `known` says which those are not, none is kept.
  absl::StatusOr<std::shared_ptr<Domain>> domain_of(uint64_t job);
  // One for a peer whose job we do not have; nobody else gets it.
  absl::StatusOr<std::shared_ptr<Domain>> nobodys_domain();
  // Domains without connections whose job is unknown go.
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
