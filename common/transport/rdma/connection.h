// One connection over an RDMA adapter: how it is made, and its Link once it is. Driven by rdma::Transport.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "common/transport/rdma/link.h"
#include "common/transport/rdma/verbs.h"
#include "common/transport/remote/connection.h"
#include "common/transport/tcp/socket.h"

namespace gleaner::transport::rdma {

class Adapter;
class Transport;

// What both sides tell when they connect, before the handshake: nothing secret, and nothing that is believed.
struct Greeting {
  uint32_t magic = 0x524e4c47;  // "GLNR"
  uint16_t version = 1;
  uint16_t slots = kSlots;
  uint32_t slot_bytes = kSlotBytes;
  uint32_t reserved = 0;
  uint64_t job = 0;
};
static_assert(sizeof(Greeting) == 24);

class Connection : public remote::Connection, private Receiver::User {
 public:
  // Asked for by a peer.
  Connection(Transport* transport, CmId id, std::string address, const wire::ServerHandshake& handshake);
  // To be made to one of `targets`, all of which are `address`, as people wrote it.
  Connection(Transport* transport, std::vector<tcp::Target> targets, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce);
  ~Connection() override;

  size_t queued_bytes() const override { return link_ == nullptr ? 0 : link_->queued_bytes(); }
  Capabilities capabilities() const override;

  // What follows is for the transport.
  // Starts to connect to the next target; when none is left, the error of the last.
  absl::Status connect_next();
  // Answers the peer that asked.
  absl::Status accept(const Greeting& theirs);
  void on_event(const rdma_cm_event& event);
  // Takes what has come. True: there may be more.
  bool take();
  void give_up();  // for what went wrong in write()
  const Adapter* adapter() const { return adapter_; }
  int port() const { return port_; }  // of the transport's ports, that it was made from; -1: the system chose

 private:
  void push(const wire::Header& header, Buffer payload) override;
  absl::Status write() override;
  void read() override;
  void let_go() override;
  void on_proven() override;
  absl::StatusOr<Buffer> place_payload(const wire::Header& header) override { return place(header); }
  void hand_on(const wire::Header& header, Buffer payload) override { handle(header, std::move(payload)); }

  absl::Status make_link(uint64_t job, bool is_known);
  absl::Status on_dial_event(const rdma_cm_event& event);
  absl::Status ask();
  absl::Status establish(const rdma_cm_event& event);
  absl::Status refused(const rdma_cm_event& event) const;
  absl::Status next_after(absl::Status why);

  Transport* const transport_;
  Adapter* adapter_ = nullptr;
  CmId id_;
  std::unique_ptr<Link> link_;
  std::vector<tcp::Target> targets_;  // not tried yet, the next one last
  int port_ = -1;
  absl::Status failure_;  // of write()
};

}  // namespace gleaner::transport::rdma
