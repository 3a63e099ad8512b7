// One connection over an RDMA adapter: how it is made, and its Link once it is. Driven by rdma::Transport.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "common/transport/rdma/lane_maker.h"
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
  uint16_t version = 2;
  uint16_t slots = kSlots;
  uint32_t slot_bytes = kSlotBytes;
  uint32_t ports = 1;  // that could be used; where both have one, nothing is said about lanes
  uint64_t job = 0;

  // Whether who says this and who says `other` speak the same.
  bool suits(const Greeting& other) const {
    return magic == other.magic && version == other.version && slots == other.slots && slot_bytes == other.slot_bytes &&
           job == other.job;
  }
};
static_assert(sizeof(Greeting) == 24);

class Connection : public remote::Connection, public IdUser, private Receiver::User {
 public:
  // Asked for by a peer.
  Connection(Transport* transport, CmId id, std::string address, const wire::ServerHandshake& handshake);
  // One way to a peer: an address of it, from one of the transport's ports; -1: as the system routes.
  struct Way {
    tcp::Target target;
    int port = -1;
  };
  // To be made by one of `ways`, the best first; `address` is as people wrote it.
  Connection(Transport* transport, std::vector<Way> ways, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce);
  ~Connection() override;

  size_t queued_bytes() const override { return link_ == nullptr ? 0 : link_->queued_bytes(); }
  Capabilities capabilities() const override;

  // What follows is for the transport.
  // Starts to connect by the next way; when none is left, the error of the last.
  absl::Status connect_next();
  // Answers the peer that asked.
  absl::Status accept(const Greeting& theirs);
  void on_event(const rdma_cm_event& event) override;
  // Takes what has come. True: there may be more.
  bool take();
  void give_up();  // for what went wrong in write()
  bool uses(const Adapter& adapter) const;
  int port() const { return port_; }  // of the transport's ports, that it was made from; -1: the system chose
  int own_port() const;               // that it is over; -1: none that may be used
  Link* link() { return link_.get(); }
  LaneMaker& lane_maker() { return lane_maker_; }
  // The next connections to this peer are made without this one's port, where there is another; a lane, or 0.
  void avoid_port_of(uint16_t path);

 private:
  void push(const wire::Header& header, Buffer payload) override;
  absl::Status write() override;
  void read() override;
  void let_go() override;
  void on_proven() override;
  absl::StatusOr<Buffer> place_payload(const wire::Header& header) override { return place(header); }
  void hand_on(const wire::Header& header, Buffer payload) override { handle(header, std::move(payload)); }
  absl::Duration now() const override;
  absl::Status on_lane_item(const PacketReader::Item& item) override { return lane_maker_.on_item(item); }

  absl::Status make_link(uint64_t job, bool is_known);
  absl::Status on_dial_event(const rdma_cm_event& event);
  absl::Status ask();
  absl::Status establish(const rdma_cm_event& event);
  absl::Status refused(const rdma_cm_event& event) const;
  absl::Status next_after(absl::Status why);
  void forget_ways_to(const sockaddr* address);
  void on_broken(const absl::Status& why);

  Transport* const transport_;
  Adapter* adapter_ = nullptr;
  CmId id_;
  std::unique_ptr<Link> link_;
  LaneMaker lane_maker_;
  std::vector<Way> ways_;  // not tried yet, the next one last
  int port_ = -1;
  uint32_t most_ports_ = 1;  // that one of the sides has
  absl::Status failure_;     // of write()
};

}  // namespace gleaner::transport::rdma
