// Transport moves frames within one process and thread, between a worker's session and the summer colocated with it.
// The receiver gets the sender's buffers, without a copy or a checksum. There is no handshake, since both ends share a
// process.
//
// The receiver's poll() delivers frames and never waits. A caller that waits elsewhere, for example for a network
// transport, asks pending() first. Once warm, it allocates no memory.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/transport/inproc/connection.h"
#include "common/transport/transport.h"

namespace gleaner::transport::inproc {

class Transport;

// Hub holds the listening transports of one process, by address. Any host and port may be used. It must outlive its
// transports.
class Hub {
 private:
  friend class Transport;
  std::map<std::string, Transport*> listeners_;
};

class Transport : public transport::Transport {
 public:
  Transport(Hub* hub, Handler* handler) : hub_(hub), handler_(handler) {}
  ~Transport() override;

  absl::StatusOr<Address> listen(const Address& address) override;  // may be called once
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  // Handles the events that are pending at the call. Events that these cause are handled by the next call.
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
