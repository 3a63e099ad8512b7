// Rig: two ends of a transport in one thread, over which the conformance suite runs. A new transport needs a Rig and a
// line in all_transports().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/env.h"
#include "common/transport/transport.h"
#include "tests/conformance/one_job.h"
#include "tests/held_port.h"

namespace gleaner::transport {

struct Received {
  wire::Header header;
  std::vector<std::byte> payload;
};

// Records the events of one end. The hooks (when_*) let a test act from within callbacks.
class End : public Handler {
 public:
  void on_connected(Connection& connection) override;
  absl::StatusOr<Buffer> on_header(Connection& connection, const wire::Header& header) override;
  void on_frame(Connection& connection, const wire::Header& header, Buffer payload) override;
  void on_closed(Connection& connection, const absl::Status& status) override;

  BufferPool pool;
  std::vector<Connection*> connections;  // the open connections
  std::vector<Received> received;
  std::vector<absl::Status> closed;
  std::function<void(Connection&)> when_connected;
  std::function<void(Connection&, const wire::Header&)> when_header;
  std::function<void(Connection&, const wire::Header&)> when_frame;
  std::function<void(Connection&)> when_closed;
  absl::Status header_answer;  // if it is not OK, on_header() returns it
  bool keep_frames = true;
};

// Limits of transports with has_network; others ignore them. No slow machine reaches these times; a test that needs a
// time to pass jumps over it (tests/jumping_clock.h).
struct Limits {
  absl::Duration ping_after = absl::Seconds(1);
  absl::Duration idle_deadline = absl::Minutes(5);
  absl::Duration handshake_timeout = absl::Minutes(5);
  size_t max_strangers = 256;
};

// Returns options for a connection of member 3 of the job.
ConnectOptions connect_options(const OneJob& job, const Limits& limits = {});

class Rig {
 public:
  explicit Rig(const Limits& limits) : limits_(limits) {}
  virtual ~Rig() = default;
  virtual Transport& client() = 0;
  virtual Transport& server() = 0;
  virtual void poll_both() = 0;
  // Returns an address at which no end listens.
  virtual Address nobody() const { return {"127.0.0.1", nobody_.port()}; }

  Address address{"127.0.0.1", 0};
  End client_end;
  End server_end;
  OneJob job;

  absl::StatusOr<Connection*> connect(void* context = nullptr);
  // Polls both ends until `done` returns true, for a minute at most. Returns whether it did.
  bool poll_until(const std::function<bool()>& done);
  // Connects, and returns the connection as the client and as the server have it; null pointers if that fails.
  std::pair<Connection*, Connection*> connected();

 private:
  const Limits limits_;
  const HeldPort nobody_;
};

struct TransportKind {
  std::string name;
  Kind kind = Kind::kTcp;    // of its connections
  bool has_network = false;  // the transport has a handshake, checksums and timeouts
  std::function<std::unique_ptr<Rig>(const Env&, const Limits&)> make;
};

std::vector<TransportKind> all_transports();

}  // namespace gleaner::transport
