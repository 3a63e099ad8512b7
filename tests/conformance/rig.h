// Two ends of a transport in one thread: what the conformance suite runs over each transport. A new transport joins by
// one Rig and one line in all_transports().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/env.h"
#include "common/transport/transport.h"
#include "tests/conformance/one_job.h"

namespace gleaner::transport {

struct Received {
  wire::Header header;
  std::vector<std::byte> payload;
};

// Records what happens at one end; hooks let a test act from within callbacks.
class End : public Handler {
 public:
  void on_connected(Connection& connection) override;
  absl::StatusOr<Buffer> on_header(Connection& connection, const wire::Header& header) override;
  void on_frame(Connection& connection, const wire::Header& header, Buffer payload) override;
  void on_closed(Connection& connection, const absl::Status& status) override;

  BufferPool pool;
  std::vector<Connection*> connections;  // up now
  std::vector<Received> received;
  std::vector<absl::Status> closed;
  std::function<void(Connection&)> when_connected;
  std::function<void(Connection&, const wire::Header&)> when_header;
  std::function<void(Connection&, const wire::Header&)> when_frame;
  std::function<void(Connection&)> when_closed;
  absl::Status header_answer;  // not OK: what on_header() returns
  bool keep_frames = true;
};

// Where there is a network; others have no use for them.
struct Limits {
  absl::Duration ping_after = absl::Seconds(1);
  absl::Duration idle_deadline = absl::Seconds(10);
  absl::Duration handshake_timeout = absl::Seconds(5);
  size_t max_strangers = 256;
};

class Rig {
 public:
  virtual ~Rig() = default;
  virtual Transport& client() = 0;
  virtual Transport& server() = 0;
  virtual void poll_both() = 0;
  // Where nobody listens.
  virtual Address nobody() const { return {"127.0.0.1", 1}; }

  Address address{"127.0.0.1", 0};
  End client_end;
  End server_end;
  OneJob job;

  absl::StatusOr<Connection*> connect(void* context = nullptr);
  // Polls both ends until `done`, some seconds at most; false: it never was.
  bool poll_until(const std::function<bool()>& done);
  // Connects and returns the client's and the server's end.
  std::pair<Connection*, Connection*> connected();
};

struct TransportKind {
  std::string name;
  bool has_network = false;  // there is something between the ends: handshake, checksums, timeouts
  std::function<std::unique_ptr<Rig>(const Env&, const Limits&)> make;
};

std::vector<TransportKind> all_transports();

}  // namespace gleaner::transport
