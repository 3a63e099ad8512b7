// Connection is one TCP connection: a socket, and frames as a stream of bytes in each direction. tcp::Transport drives
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/transport/stream/frame_reader.h"
#include "common/transport/stream/socket_connection.h"
#include "common/transport/tcp/socket.h"

namespace gleaner::transport::tcp {

class Transport;

class Connection : public stream::SocketConnection {
 public:
  // For an accepted connection.
  Connection(Transport* transport, Descriptor socket, std::string address, const wire::ServerHandshake& handshake);
  // For a connection that this side makes, to one of `targets`, the IP addresses of `address`, which the user wrote.
  Connection(Transport* transport, std::vector<Target> targets, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce);

  Kind kind() const override { return Kind::kTcp; }
  Capabilities capabilities() const override { return {}; }
  absl::Duration round_trip() const override { return least_round_trip(socket()); }
  std::optional<Sent> sent() const override { return confirmed(socket()); }

  int descriptor() const { return socket().get(); }

  // The public functions below are for the transport.
  // Starts to connect to the next target. Returns the last error if no target is left.
  absl::Status connect_next();
  absl::Status watch() override;
  void pace(double bits_per_second) const { transport::tcp::pace(socket(), bits_per_second); }

 private:
  void push(const wire::Header& header, Buffer payload) override { outbox().push(header, std::move(payload)); }
  absl::Status write() override;
  void read() override;

  void on_events(uint32_t events) override;
  void on_connect_outcome();
  absl::Status connect_another();
  uint32_t events_wanted() const;
  void read_frames();
  // Makes the socket readable only once `bytes` have arrived, or 256 KiB if that is less (SO_RCVLOWAT).
  void wake_for(size_t bytes);

  Transport* const transport_;
  std::vector<Target> targets_;  // not tried yet; the last one is tried next
  uint32_t armed_ = 0;           // the events that epoll reports
  stream::FrameReader reader_;
  const stream::FrameReader::Allocate place_;
  int low_water_ = 1;  // the socket's SO_RCVLOWAT, as set by wake_for()
};

}  // namespace gleaner::transport::tcp
