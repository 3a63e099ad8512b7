// Frames between processes of one host, through memory that they share: docs/transports.md tells how.
//
// An address's host is the path of a Unix socket, its port 0; listen() is given a directory and makes a path of its own
// there, which goes with the transport. Payloads are copied once into the ring and once out of it, and have no
// checksum: they do not leave the host's memory. Headers have theirs.
//
// A thread that waits here looks on for some microseconds before it sleeps, as long as that pays: as KVM does before it
// halts a processor (halt_poll_ns; Linux, Documentation/virt/kvm/halt-polling.rst), for longer after each wait that
// would have ended soon, for less after each that was long.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/transport/remote/listener.h"
#include "common/transport/remote/transport.h"
#include "common/transport/shm/connection.h"
#include "common/transport/shm/segment.h"
#include "common/transport/transport.h"

namespace gleaner::transport::shm {

struct Options : remote::Options {
  size_t ring_bytes = size_t{1} << 20;            // one way, of one connection; from 60 KiB to 128 MiB
  size_t most_memory = size_t{1} << 30;           // of the segments that this side makes; ResourceExhausted beyond
  bool huge_pages = true;                         // where there are free ones
  absl::Duration spin = absl::Microseconds(100);  // at most, before a thread sleeps. Never with one processor
};

class Transport : public remote::Transport {
 public:
  // `handler` and `jobs` outlive it. `jobs` is asked at each handshake, so jobs may come and go.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override;

  // Once. InvalidArgument: no such directory; PermissionDenied, ResourceExhausted: as the message says.
  absl::StatusOr<Address> listen(const Address& address) override;
  // Unavailable: nobody listens there.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  void wait(absl::Duration timeout) override;
  bool linger(absl::Duration timeout) override;

  // Bytes of the segments that this side has made, and that are still there.
  size_t memory_bytes() const { return memory_bytes_; }

  // What follows is for connections.
  size_t ring_bytes() const { return options_.ring_bytes; }
  absl::StatusOr<Segment> make_segment(size_t bytes);
  void give_back(size_t bytes) { memory_bytes_ -= bytes; }

 private:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  void accept(Descriptor socket);
  void on_connections_changed() override;
  void on_tick() override { listener_.on_tick(); }
  bool find_news();
  bool find_news_for(absl::Duration time);
  bool fall_asleep();  // false: there are news
  void wake_up();

  const Options options_;
  remote::Listener listener_;
  std::string path_;             // of the listener
  std::vector<Connection*> up_;  // those that have come up
  size_t memory_bytes_ = 0;
  bool asleep_ = false;           // peers wake us
  absl::Duration nothing_since_;  // while it is asleep: when it began to wait
  absl::Duration spin_;           // before the next sleep, by what came of the last ones
  uint32_t waits_unasked_ = 0;
};

}  // namespace gleaner::transport::shm
