// Transport moves frames between processes of one host, through memory that they share
// (docs/transports.md#shared-memory).
//
// The host of an address is the path of a Unix socket, its port is 0. listen() takes a directory and makes a new path
// in it; the transport's destructor removes the path. Payloads are copied once into the ring and once out of it. They
// have no checksum, since they do not leave the host's memory; headers have one.
//
// Before a waiting thread sleeps, it spins for some microseconds, as KVM does before it halts a processor
// (halt_poll_ns; Linux, Documentation/virt/kvm/halt-polling.rst). That time doubles after a wait that ended soon, and
// halves after a long one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/transport/shm/connection.h"
#include "common/transport/shm/segment.h"
#include "common/transport/stream/socket_transport.h"
#include "common/transport/transport.h"

namespace gleaner::transport::shm {

struct Options : stream::Options {
  size_t ring_bytes = size_t{1} << 20;   // for each direction of a connection; from 60 KiB to 128 MiB
  size_t most_memory = size_t{1} << 30;  // limit for all segments that this side makes; more is ResourceExhausted
  bool huge_pages = true;                // use huge pages where there are free ones
  absl::Duration spin = absl::Microseconds(100);  // the longest time before a thread sleeps; zero with one processor
};

class Transport : public stream::SocketTransport, public Spinner {
 public:
  // `handler` and `jobs` must outlive the transport. Each handshake looks its job up in `jobs`, so jobs may come and
  // go.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override;

  // Unavailable: no process listens at the address.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  void wait(absl::Duration timeout) override;
  bool spin_before_wait(absl::Duration timeout) override;
  Extensions extensions() override {
    Extensions all = stream::SocketTransport::extensions();
    all.spinner = this;
    return all;
  }

  // Returns the bytes of the segments that this side has made and that still exist.
  size_t memory_bytes() const { return memory_bytes_; }

  // The public functions below are for connections.
  size_t ring_bytes() const { return options_.ring_bytes; }
  absl::StatusOr<Segment> make_segment(size_t bytes);
  void give_back(size_t bytes) { memory_bytes_ -= bytes; }

 private:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  // InvalidArgument: there is no such directory. PermissionDenied, ResourceExhausted: see the message.
  absl::StatusOr<Bound> bind(const Address& address) override;
  std::unique_ptr<stream::SocketConnection> accepted(Descriptor socket,
                                                     const wire::ServerHandshake& handshake) override;
  void on_connections_changed() override;
  bool find_work();
  bool spin_for_work(absl::Duration time);
  bool prepare_sleep();  // false: an event has arrived meanwhile
  void wake_up();

  const Options options_;
  std::string path_;             // of the socket that listens
  std::vector<Connection*> up_;  // the connections that are up
  size_t memory_bytes_ = 0;
  bool asleep_ = false;               // peers were asked to wake this side
  absl::Duration sleep_began_;        // if asleep_: when the wait began
  absl::Duration spin_;               // time to spin before the next sleep, adapted to the last waits
  uint32_t waits_without_epoll_ = 0;  // counts waits that need not call epoll_wait()
};

}  // namespace gleaner::transport::shm
