// Transport moves frames over RDMA: reliable connections of InfiniBand or RoCE adapters (docs/rdma.md).
//
// The connection manager (librdmacm) makes connections to the host and port number that tcp would use; its port numbers
// are separate from those of tcp. Large payloads are written directly from the sender's buffer into the buffer that the
// receiver's handler chose; both buffers are registered once. If a host has several usable ports, a connection uses all
// of them, by lanes.
//
// The destructor closes all connections without callbacks. Frames of connections that were closed before have 250 ms to
// reach their peers.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/rdma/adapter.h"
#include "common/transport/rdma/connection.h"
#include "common/transport/rdma/connection_manager.h"
#include "common/transport/rdma/device.h"
#include "common/transport/rdma/port_table.h"
#include "common/transport/stream/transport.h"

namespace gleaner::transport::rdma {

struct Options {
  stream::Options stream;
  std::vector<DeviceChoice> devices;  // empty: all devices, by the system's routes
  int near_node = -1;                 // NUMA node of the memory that is sent; -1: nodes of the process's cores
  // Time after the last completion in which the thread looks for more without sleeping. It uses a whole core meanwhile.
  absl::Duration busy_poll = absl::ZeroDuration();
  // Whether payloads that are sent by WRITE have a checksum, too. Adapters check every packet; a checksum also covers
  // the path between adapter and memory.
  bool checksums = false;
  size_t registrations_allowed = SIZE_MAX;  // registrations beyond it fail; for tests
};

class Transport : public stream::Transport, public AdapterStatistics, public Spinner {
 public:
  // `handler` and `jobs` must outlive the transport. Each handshake looks its job up in `jobs`. Most errors are those
  // of usable_ports(): no adapter can be used, and the caller may use another transport.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override;

  // May be called for several addresses.
  absl::StatusOr<Address> listen(const Address& address) override;
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  bool spin_before_wait(absl::Duration timeout) override {
    return !awake_.empty() && spin(now() + std::min(timeout, options_.busy_poll));
  }
  void wait(absl::Duration timeout) override { wait_for_events(before_wait(timeout)); }

  AdapterCounters adapter_counters() const override { return ledger_.counters; }
  Extensions extensions() override {
    Extensions all = stream::Transport::extensions();
    all.adapter_statistics = this;
    all.spinner = this;
    return all;
  }

  // The public functions below are for connections and adapters.
  const Options& rdma_options() const { return options_; }
  bool knows(uint64_t job) const { return jobs_ != nullptr && jobs_->find(job) != nullptr; }
  ConnectionManager& connection_manager() { return connection_manager_; }
  absl::StatusOr<Adapter*> adapter_of(ibv_context* device);
  using stream::Transport::draw_nonce;
  static void reject(rdma_cm_id* id, absl::string_view why);
  PortTable& ports() { return ports_; }
  uint32_t greeted_ports() const { return static_cast<uint32_t>(ports_.size()); }
  // Returns the index in ports() of the port that an id uses; -1: none of them.
  int port_of(const rdma_cm_id* id) const;
  // Listens for lanes on this port and returns the connection manager's port number for that; 0: it can't listen.
  uint16_t listen_for_lanes(size_t port);
  void note_lane() { ++ledger_.counters.lanes; }  // a lane has come up
  void wake_link(Link* link);                     // the link may have completions
  void forget_link(Link* link);                   // the link is about to be destroyed
  // Makes poll() call the connection's close_after_write_error().
  void note_failed(Connection* connection) { failed_.push_back(connection); }
  void forget_failed(Connection* connection) { std::erase(failed_, connection); }
  // Keeps the link of a closed connection for up to a second, since frames that the connection sent may still be in
  // flight.
  void keep(CmId id, std::unique_ptr<Link> link);
  void on_adapter_gone(Adapter* adapter);

 private:
  // The link of a closed connection.
  struct Lingering {
    CmId id;
    std::unique_ptr<Link> link;
    absl::Duration until;
  };

  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs,
            std::vector<Port> ports, EventChannel channel);
  absl::Duration before_wait(absl::Duration timeout);
  void take_turn() override;
  bool has_turn() const override { return !awake_.empty() || !failed_.empty(); }
  void on_tick() override;
  void on_event(const rdma_cm_event& event);
  void on_request(const rdma_cm_event& event);
  void on_lane_request(const rdma_cm_event& event);
  std::vector<size_t> connections_by_port() const;  // by port: number of connections made from it
  // Returns an error if the user named devices and the id uses another one.
  absl::Status check_device(const rdma_cm_id* id) const;
  void handle_completions(Link* link);
  bool spin(absl::Duration until);
  void let_sleep(size_t index);
  void end_lingering();
  void drain();

  const Options options_;
  const wire::JobSecrets* const jobs_;
  PortTable ports_;
  Domain::Ledger ledger_;
  ConnectionManager connection_manager_;  // outlives all ids
  std::vector<std::unique_ptr<Adapter>> adapters_;
  std::vector<CmId> listeners_;
  std::vector<CmId> lane_listeners_;  // by port; null: does not listen yet
  std::vector<Lingering> lingering_;
  std::vector<Link*> awake_;         // links to look at without an event
  std::vector<Connection*> failed_;  // connections whose close_after_write_error() is due
  absl::Duration last_came_;         // when the last completion arrived; kept only for busy_poll
};

}  // namespace gleaner::transport::rdma
