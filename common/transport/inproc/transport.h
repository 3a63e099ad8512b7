// Frames within one process and thread: between a worker's session and the summer colocated with it. Payloads are
// handed over as they are, without a copy or a checksum. No handshake: who shares the process shares the secret.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/transport/inproc/connection.h"
#include "common/transport/transport.h"

namespace gleaner::transport::inproc {

class Transport;

// The addresses of one process: what listens where. Outlives its transports.
class Hub {
 private:
  friend class Transport;
  std::map<std::string, Transport*> listeners_;
};

class Transport : public transport::Transport {
 public:
  Transport(Hub* hub, Handler* handler) : hub_(hub), handler_(handler) {}
  ~Transport() override;

  absl::StatusOr<Address> listen(const Address& address) override;
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  // Never waits: what comes is there already. Handles what was pending when it was called.
  void poll(absl::Duration timeout) override;
  int descriptor() const override { return -1; }
  void wake() override {}

  // poll() has something to do: to be asked after every other thing that may send here.
  bool pending() const { return !inbox_.empty(); }

 private:
  friend class Connection;
  struct Event {
    enum class Kind { kConnected, kFrame, kClosed } kind;
    Connection* connection;
    wire::Header header;
    Buffer payload;
    absl::Status status;
  };

  Connection* adopt(std::unique_ptr<Connection> connection);
  void post(Event event) { inbox_.push_back(std::move(event)); }
  void handle(Event& event);

  Hub* const hub_;
  Handler* const handler_;
  std::string listening_;
  std::vector<Event> inbox_;
  std::vector<Event> handling_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace gleaner::transport::inproc
