// One TCP connection: its socket, frames in and frames out as a stream of bytes. Driven by tcp::Transport.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/transport/remote/connection.h"
#include "common/transport/remote/frame_reader.h"
#include "common/transport/remote/outbox.h"
#include "common/transport/remote/source.h"
#include "common/transport/tcp/socket.h"

namespace gleaner::transport::tcp {

class Transport;

class Connection : public remote::Connection, private remote::Source {
 public:
  // Accepted.
  Connection(Transport* transport, Descriptor socket, std::string address, const wire::ServerHandshake& handshake);
  // To be made to one of `targets`, all of which are `address`, as people wrote it.
  Connection(Transport* transport, std::vector<Target> targets, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce);

  size_t queued_bytes() const override { return outbox_.bytes(); }
  Capabilities capabilities() const override { return {}; }
  absl::Duration round_trip() const override { return least_round_trip(socket_); }

  // What follows is for the transport.
  int descriptor() const { return socket_.get(); }
  // Starts to connect to the next target; when none is left, the error of the last.
  absl::Status connect_next();
  // From here on its transport wakes it.
  absl::Status watch();
  void pace(double bits_per_second) const { transport::tcp::pace(socket_, bits_per_second); }

 private:
  void push(const wire::Header& header, Buffer payload) override { outbox_.push(header, std::move(payload)); }
  absl::Status write() override;
  void read() override;
  void let_go() override { outbox_.clear(); }

  void on_events(uint32_t events) override;
  void on_connect_outcome();
  absl::Status connect_another();
  uint32_t events_wanted() const;
  void read_frames();
  void wake_for(size_t bytes);  // that are there; fewer are left to gather

  Transport* const transport_;
  Descriptor socket_;
  std::vector<Target> targets_;  // not tried yet, the next one last
  uint32_t armed_ = 0;           // what epoll was asked for
  remote::FrameReader reader_;
  const remote::FrameReader::Allocate place_;
  remote::Outbox outbox_;
  int low_water_ = 1;  // of the socket: what wake_for() asked for
};

}  // namespace gleaner::transport::tcp
