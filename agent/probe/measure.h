// Measures the bandwidth between the agents of two nodes over a TCP connection, for NICs that do not report their
// speed, and how long a small message takes. The load takes a fifth of a second each way, after echoes
// (agent/probe/echoes.h) of a twentieth.
//
// Both sides prove that they know a secret (HMAC-SHA256 over both sides' nonces) before any load is sent. The secret
// itself is never sent, and the load has no content. A connection ends after a limit. A server serves one connection
// at a time and pauses after each measurement. It says in its first message whether its LoadBudget allows a
// measurement. For a fast link, one TCP stream in so short a time gives only a lower bound. docs/agent.md has the
// format.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agent/probe/load_budget.h"
#include "agent/probe/socket.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"
#include "common/base/env.h"
#include "common/base/message_overhead.h"

namespace gleaner::probe {

inline constexpr absl::Duration kLoadTime = absl::Milliseconds(200);   // each way
inline constexpr absl::Duration kMostTime = absl::Milliseconds(1500);  // limit of a connection, unless stated

class MeasureServer {
 public:
  // Serves on a thread of its own, "gln-measure", until destroyed. `address.host` is an IP address; port 0: any free
  // port. After each measurement the server accepts no connection for `rest`. A connection ends after `most`, which
  // slow links may need above kMostTime. `budget` pays for the loads, and must outlive the server; null: they are not
  // limited. Unavailable: the port is in use.
  static absl::StatusOr<std::unique_ptr<MeasureServer>> start(const Env& env, const Address& address,
                                                              std::string secret,
                                                              absl::Duration rest = absl::Seconds(1),
                                                              absl::Duration most = kMostTime,
                                                              LoadBudget* budget = nullptr);
  ~MeasureServer();
  MeasureServer(const MeasureServer&) = delete;
  MeasureServer& operator=(const MeasureServer&) = delete;
  Address address() const { return address_; }  // with the actual port

 private:
  MeasureServer(const Env& env, Socket listener, Address address, std::string secret, absl::Duration rest,
                absl::Duration most, LoadBudget* budget);
  void run();
  bool wait(int fd, int milliseconds) const;

  const Env env_;
  const Socket listener_;
  const Address address_;
  const std::string secret_;
  const absl::Duration rest_, most_;
  LoadBudget* const budget_;
  const Descriptor stop_;  // an eventfd
  std::thread thread_;     // declared last, since it uses all members above
};

// The path to a peer, as a measurement shows it.
struct MeasuredPath {
  double bits_per_second = 0;  // of the slower direction
  absl::Duration round_trip;   // the shortest of the connection, as its kernel sees it: the network's time alone
  absl::Duration answer_time;  // the usual time of a small message and its answer, as the client's program sees it

  // Returns the overhead of a message.
  absl::Duration overhead() const { return message_overhead(answer_time, round_trip); }
};

struct MeasureLimits {
  absl::Duration most = kMostTime;  // limit of the connection
  LoadBudget* budget = nullptr;     // pays for the load; null: it is not limited
  bool can_wait = false;            // a busy peer is not measured
};

// Measures the path to a peer. Blocks for at most `limits.most`. PermissionDenied: the peer does not know the secret.
// FailedPrecondition: the peer is this machine. ResourceExhausted: the peer is busy, and the measurement can wait.
// Unavailable, DeadlineExceeded: the caller may try another peer.
absl::StatusOr<MeasuredPath> measure_path(const Env& env, const Address& peer, const std::string& secret,
                                          const MeasureLimits& limits = {});

// Returns the bandwidth that measure_path() finds.
absl::StatusOr<double> measure(const Env& env, const Address& peer, const std::string& secret,
                               const MeasureLimits& limits = {});

// Returns the IP addresses of a name (such as a headless Service's), each with the port of `peers`.
absl::StatusOr<std::vector<Address>> resolve(const Address& peers);

}  // namespace gleaner::probe
