// LatencyProbe measures the latencies between this agent and others over UDP, and answers their questions.
//
// LatencyProbe has one thread, "gln-latency", which sends the questions that LatencyRounds decides on, and answers
// questions with a valid proof. The thread drops all other packets without an answer, and counts them. LatencyProbe
// looks up no names; set_peers() gives it the addresses. A round trip is the time from the call that sends a question
// until the kernel has the answer, less the time for which the peer held the question: so neither agent's wait for a
// processor after a packet's arrival counts. Thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/probe/latency_packet.h"
#include "agent/probe/latency_rounds.h"
#include "agent/probe/udp_socket.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"
#include "common/base/env.h"

namespace gleaner::probe {

struct LatencyReport {
  std::vector<api::PeerLatency> entries;  // as LatencyTable::entries()
  Coverage coverage;
  uint64_t sent = 0;     // questions
  uint64_t lost = 0;     // questions without an answer in time
  uint64_t refused = 0;  // packets that were dropped, since they have no valid proof, another version or wrong fields
};

class LatencyProbe {
 public:
  struct Options {
    Address listen;      // an IP address; port 0: any free port
    uint16_t peer_port;  // of all other agents
    std::string secret;  // the same for all agents
    std::string node;    // name of this agent's node
    LatencyTimes times = {};
  };

  // InvalidArgument: there is no secret, the node's name is invalid, or this machine does not have the address.
  // Unavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<LatencyProbe>> start(const Env& env, Options options);
  ~LatencyProbe();  // does not wait for answers
  LatencyProbe(const LatencyProbe&) = delete;
  LatencyProbe& operator=(const LatencyProbe&) = delete;

  Address address() const { return address_; }  // with the actual port
  void set_peers(PeerList peers) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_bits_per_second(double speed) ABSL_LOCKS_EXCLUDED(mutex_);  // of the NIC, each way; 0: unknown
  // Stores entries that an earlier process of this agent has measured.
  void restore(const std::vector<api::PeerLatency>& entries) ABSL_LOCKS_EXCLUDED(mutex_);

  LatencyReport report() const ABSL_LOCKS_EXCLUDED(mutex_);
  Texts node_names() const ABSL_LOCKS_EXCLUDED(mutex_);  // names of nodes by host, as far as they are known

 private:
  // The question in flight.
  struct Asked {
    PacketNonce nonce;
    absl::Time at;
  };

  LatencyProbe(const Env& env, Options options, UdpSocket socket, Address address);
  void run();
  bool wait(absl::Duration time, bool for_packets) const;
  LatencyRounds::Now now() const { return {env_.clock->now(), env_.clock->since_start()}; }
  void ask() ABSL_LOCKS_EXCLUDED(mutex_);
  bool receive_one() ABSL_LOCKS_EXCLUDED(mutex_);
  void answer(const LatencyPacket& question, const UdpSocket::Received& received) const;

  const Env env_;
  const Options options_;
  const UdpSocket socket_;
  const Address address_;
  const Descriptor stop_;       // an eventfd
  std::optional<Asked> asked_;  // used by the thread only
  mutable absl::Mutex mutex_;
  LatencyRounds rounds_ ABSL_GUARDED_BY(mutex_);
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;  // declared last, since it uses all members above
};

}  // namespace gleaner::probe
