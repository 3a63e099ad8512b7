// Frames over RDMA: reliable connections of InfiniBand or RoCE adapters. docs/rdma.md says how.
//
// Connections are made by the connection manager (librdmacm) to the host and port that tcp would use; its ports are a
// space of their own. Large payloads are written straight from the sender's buffer into the one that the receiver's
// handler gave, both registered once. Where both hosts have several ports, a connection uses them all. Destroying the
// transport closes everything without callbacks, and gives what was closed before some 100 ms to reach its peer.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/transport/rdma/adapter.h"
#include "common/transport/rdma/connection.h"
#include "common/transport/rdma/device.h"
#include "common/transport/rdma/paths.h"
#include "common/transport/remote/transport.h"

namespace gleaner::transport::rdma {

struct Options {
  remote::Options remote;
  std::vector<DeviceChoice> devices;  // none: any that is there, as the system routes
  int near_node = -1;                 // the NUMA node of what is sent; -1: those of the cores that it may run on
  // So long after the last that came, completions are looked for without sleeping. Takes a whole core meanwhile.
  absl::Duration busy_poll = absl::ZeroDuration();
  // Payloads that are written, too, carry a checksum. Adapters check every packet; this adds the way between adapter
  // and memory.
  bool checksums = false;
  size_t registrations_allowed = SIZE_MAX;  // then they fail; for tests
};

// What its connections did so far.
class Transport : public remote::Transport {
 public:
  // `handler` and `jobs` outlive it. `jobs` is asked at each handshake. Errors are usable_ports()'s: there is no
  // adapter that can be used, which the caller may answer by another transport.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override;

  // May be called for several addresses.
  absl::StatusOr<Address> listen(const Address& address) override;
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  bool linger(absl::Duration timeout) override {
    return !awake_.empty() && spin(now() + std::min(timeout, options_.busy_poll));
  }
  void wait(absl::Duration timeout) override { wait_for_events(before_wait(timeout)); }

  const std::vector<Port>& ports() const { return ports_; }
  AdapterCounters adapter_counters() const override { return ledger_.counters; }

  // What follows is for connections and adapters.
  const Options& rdma_options() const { return options_; }
  bool knows(uint64_t job) const { return jobs_ != nullptr && jobs_->find(job) != nullptr; }
  absl::StatusOr<CmId> make_id(void* context);
  absl::StatusOr<Adapter*> adapter_of(ibv_context* device);
  using remote::Transport::draw_nonce;
  static void reject(rdma_cm_id* id, absl::string_view why);
  // Of ports(): which an id is over; -1: none of them.
  int port_of(const rdma_cm_id* id) const;
  sockaddr* address_of(int port) { return reinterpret_cast<sockaddr*>(&ports_[static_cast<size_t>(port)].address); }
  // Whether connections may be made from it, and with what bandwidth, by how near it is.
  bool is_usable(size_t port) const { return ports_[port].address.ss_family != AF_UNSPEC && is_active(ports_[port]); }
  uint64_t worth(size_t port) const { return worth_[port]; }
  PathEnd path_end(size_t port) const;
  uint32_t greeted_ports() const { return static_cast<uint32_t>(ports_.size()); }
  // Where this port takes requests of lanes; 0: it can't.
  uint16_t listen_for_lanes(size_t port);
  void note_lane() { ++ledger_.counters.lanes; }  // has come up
  // For a while this peer is not to be reached from there, if there is another way.
  void avoid(int port, const std::string& peer);
  bool is_avoided(int port, const std::string& peer) const;
  void wake_link(Link* link);                                                  // it may have completions
  void forget_link(Link* link);                                                // it goes
  void note_failed(Connection* connection) { failed_.push_back(connection); }  // it shall give_up()
  void forget_failed(Connection* connection) { std::erase(failed_, connection); }
  // A connection is over; what it has sent may still be on the way.
  void keep(CmId id, std::unique_ptr<Link> link);
  void on_adapter_gone(Adapter* adapter);

 private:
  struct Lingering {
    CmId id;
    std::unique_ptr<Link> link;
    absl::Duration until;
  };
  // Of the connection manager.
  class Events : public remote::Source {
   public:
    explicit Events(Transport* transport) : transport_(transport) {}
    void on_events(uint32_t events) override;

   private:
    Transport* const transport_;
  };

  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs,
            std::vector<Port> ports, EventChannel events);
  absl::Duration before_wait(absl::Duration timeout);
  void take_turn() override;
  bool has_turn() const override { return !awake_.empty() || !failed_.empty(); }
  void on_tick() override;
  void on_event(const rdma_cm_event& event);
  void on_request(const rdma_cm_event& event);
  void on_lane_request(const rdma_cm_event& event);
  // The ports to connect from, the best first; -1: as the system routes.
  std::vector<int> ports_to(const sockaddr_storage& target, const std::string& peer) const;
  double load_of(size_t port) const;
  absl::Status check_device(const rdma_cm_id* id) const;
  void take(Link* link);
  bool spin(absl::Duration until);
  void let_sleep(size_t index);
  void bury_lingering();
  void drain();

  const Options options_;
  const wire::JobSecrets* const jobs_;
  std::vector<Port> ports_;
  std::vector<double> costs_;    // to reach each from where our memory is
  std::vector<uint64_t> worth_;  // the bandwidth of each, at that cost
  struct Avoided {
    int port;
    std::string peer;
    absl::Duration until;
  };
  std::vector<Avoided> avoided_;
  Domain::Ledger ledger_;
  EventChannel events_;  // outlives all that it tells of
  Events on_events_{this};
  std::vector<std::unique_ptr<Adapter>> adapters_;
  std::vector<CmId> listeners_;
  std::vector<CmId> lane_listeners_;  // by port; null: none yet
  std::vector<Lingering> lingering_;
  std::vector<Link*> awake_;
  std::vector<Connection*> failed_;
  absl::Duration last_came_;
};

}  // namespace gleaner::transport::rdma
