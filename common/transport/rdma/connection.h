// Connection is one connection over an RDMA adapter. It is made through librdmacm's connection manager, and owns its
// Link. rdma::Transport drives it.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "common/transport/rdma/lane_maker.h"
#include "common/transport/rdma/link.h"
#include "common/transport/rdma/verbs.h"
#include "common/transport/stream/connection.h"
#include "common/transport/tcp/socket.h"

namespace gleaner::transport::rdma {

class Adapter;
class Transport;

// The private data by which both sides greet each other before the handshake. It holds no secrets, and is not trusted.
struct Greeting {
  uint32_t magic = 0x524e4c47;  // "GLNR"
  uint16_t version = 2;
  uint16_t slots = kSlots;
  uint32_t slot_bytes = kSlotBytes;
  uint32_t ports = 1;  // number of ports that this side could use; if both sides have one port, they make no lanes
  uint64_t job = 0;

  // Returns whether the two sides speak the same protocol, for the same job.
  bool suits(const Greeting& other) const {
    return magic == other.magic && version == other.version && slots == other.slots && slot_bytes == other.slot_bytes &&
           job == other.job;
  }
};
static_assert(sizeof(Greeting) == 24);

class Connection : public stream::Connection, public IdUser, private Receiver::User {
 public:
  // For a connection that a peer requested.
  Connection(Transport* transport, CmId id, std::string address, const wire::ServerHandshake& handshake);
  // A route to a peer: one of its addresses, and an index in the transport's ports(); -1: the system chooses the port.
  struct Route {
    tcp::Target target;
    int port = -1;
  };
  // For a connection that this side makes, by one of `routes`, the best first. `address` is as the user wrote it.
  Connection(Transport* transport, std::vector<Route> routes, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce);
  ~Connection() override;

  size_t queued_bytes() const override { return link_ == nullptr ? 0 : link_->queued_bytes(); }
  Kind kind() const override { return Kind::kRdma; }
  Capabilities capabilities() const override;

  // The public functions below are for the transport.
  // Starts to connect by the next route. Returns the last error if no route is left.
  absl::Status connect_next();
  // Accepts the peer's request.
  absl::Status accept(const Greeting& theirs);
  void on_event(const rdma_cm_event& event) override;
  // Handles completions. Returns true if there may be more.
  bool handle_completions();
  void close_after_write_error();  // ends the connection with the error of write()
  bool uses(const Adapter& adapter) const;
  // Returns the index in the transport's ports() of the port that the connection was made from; -1: the system's route.
  int port() const { return port_; }
  // Returns the index in the transport's ports() of the port that the connection uses; -1: none of them.
  int own_port() const;
  Link* link() { return link_.get(); }
  LaneMaker& lane_maker() { return lane_maker_; }
  // On the connecting side: makes the next connections to this peer avoid the port of `path`, if there is another port.
  // `path` is a lane's number, or 0, the connection's own link.
  void avoid_port_of(uint16_t path);

 private:
  void push(const wire::Header& header, Buffer payload) override;
  absl::Status write() override;
  void read() override;
  void release_frames() override;
  void on_proven() override;
  absl::StatusOr<Buffer> place_payload(const wire::Header& header) override { return place(header); }
  void hand_on(const wire::Header& header, Buffer payload) override { handle(header, std::move(payload)); }
  absl::Duration now() const override;
  absl::Status on_lane_item(const PacketReader::Item& item) override { return lane_maker_.on_item(item); }

  absl::Status make_link(uint64_t job, bool is_known);
  absl::Status on_dial_event(const rdma_cm_event& event);
  absl::Status request();
  absl::Status establish(const rdma_cm_event& event);
  absl::Status refused(const rdma_cm_event& event) const;
  absl::Status connect_next_after(absl::Status why);
  void forget_routes_to(const sockaddr* address);
  void on_broken(const absl::Status& why);

  Transport* const transport_;
  Adapter* adapter_ = nullptr;
  CmId id_;
  std::unique_ptr<Link> link_;
  LaneMaker lane_maker_;
  std::vector<Route> routes_;  // not tried yet; the last one is tried next
  int port_ = -1;
  uint32_t most_ports_ = 1;  // Greeting::ports of the side that has more
  absl::Status failure_;     // the first error of write()
};

}  // namespace gleaner::transport::rdma
