#include "common/transport/rdma/adapter.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "common/base/status_macros.h"
#include "common/transport/rdma/transport.h"

namespace gleaner::transport::rdma {

Adapter::Adapter(Transport* transport, ibv_context* device, Domain::Ledger* ledger, CompletionChannel channel)
    : transport_(transport), device_(device), ledger_(ledger), channel_(std::move(channel)) {}

absl::StatusOr<std::unique_ptr<Adapter>> Adapter::create(Transport* transport, ibv_context* device,
                                                         Domain::Ledger* ledger) {
  CompletionChannel channel(ibv_create_comp_channel(device));
  if (channel == nullptr) return verbs_error(errno, "can't make a completion channel");
  GLN_RETURN_IF_ERROR(set_nonblocking(channel->fd));
  auto adapter = std::unique_ptr<Adapter>(new Adapter(transport, device, ledger, std::move(channel)));
  GLN_RETURN_IF_ERROR(transport->watch(EPOLL_CTL_ADD, adapter->channel()->fd, EPOLLIN, adapter.get()));
  return adapter;
}

absl::StatusOr<std::shared_ptr<Domain>> Adapter::domain_of(uint64_t job) {
  std::shared_ptr<Domain>& domain = domains_[job];
  if (domain == nullptr) {
    auto made = Domain::create(device_, job, ledger_);
    if (!made.ok()) {
      domains_.erase(job);
      return made.status();
    }
    domain = *std::move(made);
  }
  return domain;
}

absl::StatusOr<std::shared_ptr<Domain>> Adapter::make_private_domain() { return Domain::create(device_, 0, ledger_); }

void Adapter::on_events(uint32_t events) {
  ibv_cq* queue = nullptr;
  void* link = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &link) == 0) {
    ibv_ack_cq_events(queue, 1);
    transport_->wake_link(static_cast<Link*>(link));
  }
  if (errno == EAGAIN && (events & uint32_t{EPOLLERR}) == 0) return;
  // The device was removed, and the descriptor would stay readable forever.
  gone_ = true;
  transport_->watch(EPOLL_CTL_DEL, channel_->fd, 0, this).IgnoreError();
  transport_->on_adapter_gone(this);
}

}  // namespace gleaner::transport::rdma
