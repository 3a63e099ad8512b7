// One TCP connection: its socket, its handshake, frames in and frames out. Driven by tcp::Transport.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/transport/frame_reader.h"
#include "common/transport/tcp/socket.h"
#include "common/transport/transport.h"

namespace gleaner::transport::tcp {

class Transport;

class Connection : public transport::Connection {
 public:
  // Accepted, or being made when `client` is there.
  Connection(Transport* transport, Socket socket, std::string address, std::optional<wire::ClientHandshake> client,
             std::optional<wire::ServerHandshake> server, absl::Duration now);

  void send(const wire::Header& header, Buffer payload) override;
  size_t queued_bytes() const override { return queued_bytes_; }
  void close(absl::Status status) override;
  const Peer& peer() const override { return peer_; }
  Capabilities capabilities() const override { return {}; }

  // For the transport.
  int descriptor() const { return socket_.descriptor(); }
  bool is_up() const { return phase_ == Phase::kUp; }
  bool is_dead() const { return phase_ == Phase::kDead; }
  const absl::Status& status() const { return status_; }
  void on_readable(absl::Duration now);
  void on_writable(absl::Duration now);
  // Writes what the kernel takes.
  void flush();
  bool wants_write() const { return phase_ == Phase::kConnecting || head_ < queue_.size(); }
  // Handshake timeout, ping on idle, silence for too long.
  void check_time(absl::Duration now);
  uint32_t armed = 0;  // what the transport asked epoll for
  bool dirty = false;  // in the transport's list of connections with frames to write

  absl::Duration handshake_deadline;

 private:
  enum class Phase { kConnecting, kHandshake, kUp, kDead };
  struct Outgoing {
    wire::Header header;
    Buffer payload;
  };

  void begin_handshake();
  void handle(const wire::Header& header, Buffer payload);
  void on_handshake(const wire::Header& header, ConstBytes payload);
  void send_handshake(const std::vector<wire::HandshakeFrame>& frames);
  void come_up(uint64_t job, uint32_t member);
  void enqueue(wire::Header header, Buffer payload);
  void drop_written(size_t bytes);

  Transport* const transport_;
  Socket socket_;
  Phase phase_;
  Peer peer_;
  std::optional<wire::ClientHandshake> client_;
  std::optional<wire::ServerHandshake> server_;
  FrameReader reader_;
  FrameReader::Allocate allocate_;
  std::vector<Outgoing> queue_;  // [head_, size) still to be written
  size_t head_ = 0;
  size_t head_written_ = 0;  // bytes of queue_[head_]
  size_t queued_bytes_ = 0;
  absl::Duration last_heard_;
  absl::Duration last_ping_;
  absl::Status status_;
};

}  // namespace gleaner::transport::tcp
