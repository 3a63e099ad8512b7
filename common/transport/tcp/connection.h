// One TCP connection: its socket, its handshake, frames in and frames out. Driven by tcp::Transport.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/transport/frame_reader.h"
#include "common/transport/tcp/outbox.h"
#include "common/transport/tcp/socket.h"
#include "common/transport/transport.h"

namespace gleaner::transport::tcp {

class Transport;

class Connection : public transport::Connection {
 public:
  // Accepted: the other side begins the handshake.
  Connection(Transport* transport, Socket socket, std::string address, const wire::ServerHandshake& handshake,
             absl::Duration deadline);
  // To be made to one of `targets`, all of which are `address`, as people wrote it.
  Connection(Transport* transport, std::vector<Target> targets, std::string address, const ConnectOptions& options,
             const wire::Nonce& nonce, absl::Duration deadline);

  void send(const wire::Header& header, Buffer payload) override;
  size_t queued_bytes() const override { return outbox_.bytes(); }
  void close(absl::Status status) override;
  const Peer& peer() const override { return peer_; }
  Capabilities capabilities() const override { return {}; }
  absl::Duration round_trip() const override { return least_round_trip(socket_); }

  // What follows is for the transport.
  int descriptor() const { return socket_.descriptor(); }
  bool is_up() const { return phase_ == Phase::kUp; }
  bool is_dead() const { return phase_ == Phase::kDead; }
  const absl::Status& status() const { return status_; }  // why it is dead

  // Starts to connect to the next target; when none is left, the error of the last.
  absl::Status connect_next();
  void on_readable();
  void on_writable();
  // Gives the kernel what it takes, up to one turn's worth.
  void flush();
  bool wants_write() const { return phase_ == Phase::kConnecting || !outbox_.empty(); }
  void pace(double bits_per_second) const { transport::tcp::pace(socket_, bits_per_second); }
  // Time keeping: `listened` is how long it could have heard from its peer since the last call.
  void check_time(absl::Duration now, absl::Duration listened);

  uint32_t armed = 0;  // what the transport asked epoll for
  bool dirty = false;  // in the transport's list of connections with frames to write

 private:
  enum class Phase { kConnecting, kHandshake, kUp, kDead };

  // Where the payload of a frame that begins shall go.
  absl::StatusOr<Buffer> place(const wire::Header& header);
  void read_frames();
  void wake_for(size_t bytes);  // that are there; fewer are left to gather
  void handle(const wire::Header& header, Buffer payload);
  void on_handshake(const wire::Header& header, ConstBytes payload);
  void send_handshake(const std::vector<wire::HandshakeFrame>& frames);
  void come_up();
  void enqueue(const wire::Header& header, Buffer payload);
  void enqueue_empty(wire::FrameType type);
  // Closes for what the peer sent, with its address before the message.
  void refuse(const absl::Status& status, bool tell = true);
  // Writes what the kernel still takes, an error as a REJECT last.
  void say_goodbye(const absl::Status& status);
  void die(absl::Status status);
  absl::Status broken(int error) const;

  Transport* const transport_;
  Socket socket_;
  Phase phase_;
  Peer peer_;
  std::vector<Target> targets_;  // not tried yet, the next one last
  std::optional<wire::ClientHandshake> client_;
  std::optional<wire::ServerHandshake> server_;
  const absl::Duration handshake_deadline_;
  const Patience patience_;
  FrameReader reader_;
  const FrameReader::Allocate place_;
  Outbox outbox_;
  int low_water_ = 1;       // of the socket: what wake_for() asked for
  absl::Duration silence_;  // of the peer, as far as we listened
  absl::Duration pinged_;   // silence_ at the last ping
  absl::Status status_;
};

}  // namespace gleaner::transport::tcp
