// Frames within one process and thread: between a worker's session and the summer colocated with it. Payloads are
// handed over as they are, without a copy or a checksum. No handshake: who shares the process shares the secret.
//
// Frames are handed over by the receiver's poll(), which never waits. Who waits elsewhere, for a network transport say,
// asks pending() first. Once warm, nothing allocates.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/transport/inproc/connection.h"
#include "common/transport/transport.h"

namespace gleaner::transport::inproc {

class Transport;

// The addresses of one process: what listens where. Any string of Address will do. Outlives its transports.
class Hub {
 private:
  friend class Transport;
  std::map<std::string, Transport*> listeners_;
};

class Transport : public transport::Transport {
 public:
  Transport(Hub* hub, Handler* handler) : hub_(hub), handler_(handler) {}
  ~Transport() override;

  absl::StatusOr<Address> listen(const Address& address) override;  // once
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  // Handles what was pending when it was called; what that brings about is for the next call.
  void poll(absl::Duration timeout) override;
  void wait(absl::Duration) override {}
  void flush() override {}
  int descriptor() const override { return -1; }
  bool pending() const override { return !inbox_.empty(); }
  void wake() override {}  // poll() never waits

 private:
  friend class Connection;
  struct Event {
    enum class Kind { kConnected, kFrame, kParted, kClosed } kind;
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
