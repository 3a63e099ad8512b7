// PortTable holds the RDMA ports that a transport uses on this machine. It chooses the ports from which to connect to a
// peer, and the bandwidth with which to use each port, given how near the port is to the memory that is sent
// (nearness.h). Pure: the caller passes the time, and a function that returns whether a port is active. Belongs to the
// transport's thread.
//
// Ports have indexes, in the order of the constructor's list. The index -1 (kByRoute) stands for the port that the
// system's routes choose.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/transport/rdma/device.h"
#include "common/transport/rdma/paths.h"

namespace gleaner::transport::rdma {

class PortTable {
 public:
  static constexpr int kByRoute = -1;
  using IsActive = std::function<bool(const Port&)>;

  // `costs`: the cost of a transfer to each port from the memory that is sent. `named`: the user named the devices of
  // the ports, so the ports are used even if they are far.
  PortTable(std::vector<Port> ports, std::vector<double> costs, bool named, IsActive is_active);

  size_t size() const { return ports_.size(); }
  const Port& operator[](size_t port) const { return ports_[port]; }
  // Returns the address to connect from or to listen on, in the form that librdmacm takes.
  sockaddr* address_of(int port) { return reinterpret_cast<sockaddr*>(&ports_[static_cast<size_t>(port)].address); }
  // Returns the index of a device's port; -1: the table does not have the port.
  int find(absl::string_view device, uint8_t number) const;
  // Returns whether connections may use the device: always, unless the user named other devices.
  bool allows(absl::string_view device) const;

  // Returns whether connections may be made from the port now.
  bool is_usable(size_t port) const { return ports_[port].address.ss_family != AF_UNSPEC && is_active_(ports_[port]); }
  // Returns the bandwidth with which to use the port, in bits per second; 0: no payloads.
  uint64_t usable_bandwidth(size_t port) const { return usable_bandwidths_[port]; }
  PathEnd path_end(size_t port) const;

  // Ranks the port last in connections to the peer for a minute, and keeps lanes to the peer off the port.
  void avoid(int port, const std::string& peer, absl::Duration now);
  bool is_avoided(int port, const std::string& peer, absl::Duration now) const;

  // Returns the ports to connect from to the peer's address `target`, in the order to try them. `connections` has the
  // number of connections made from each port.
  //
  // The best port is a usable one. Among these a closer address decides, then a shorter way to memory, then a lower
  // load. If the user named devices, all their ports with a route to the peer are tried, the best first. Otherwise the
  // best port in the peer's network is tried, then kByRoute. kByRoute alone would not do, since of several ports in
  // that network a route always takes the same one, however far it is. For peers on this machine only kByRoute is
  // tried.
  std::vector<int> ports_to(const sockaddr_storage& target, const std::string& peer,
                            const std::vector<size_t>& connections, absl::Duration now) const;

 private:
  struct Avoided {
    int port;
    std::string peer;
    absl::Duration until;
  };

  std::vector<Port> ports_;
  const std::vector<double> costs_;
  const std::vector<uint64_t> usable_bandwidths_;
  const bool named_;
  const IsActive is_active_;
  std::vector<Avoided> avoided_;
};

}  // namespace gleaner::transport::rdma
