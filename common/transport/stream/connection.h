// Connection is the base of all connections to other processes: phases, handshake, keep-alive and closing.
//
//   connecting --connected()--> handshake --on_proven()--> settling --come_up()--> up     each of them --die()--> dead
//
// An accepted connection begins in the handshake. A derived class moves the frames: push() gives it the frames to send,
// and it passes the frames that arrive to place() and handle(). stream::Transport drives it, in its thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/transport/stream/answer_times.h"
#include "common/transport/transport.h"

namespace gleaner::transport::stream {

class Transport;

class Connection : public transport::Connection {
 public:
  void send(const wire::Header& header, Buffer payload) final;
  bool all_arrived() const final { return arrived_ == sent_; }
  void close(absl::Status status) final;
  const Peer& peer() const final { return peer_; }
  void ping(uint32_t times) final;
  bool is_pinging() const final { return is_up() && answer_times_.is_under_way(); }
  absl::Duration answer_time() const final { return answer_times_.usual(); }

  // The public functions below are for the transport.
  bool is_up() const { return phase_ == Phase::kUp; }
  bool is_dead() const { return phase_ == Phase::kDead; }
  const absl::Status& status() const { return status_; }  // why the connection closed; needs is_dead()
  void flush();
  void read_if_alive();  // calls read() unless the connection is dead
  // Enforces timeouts and sends PINGs; called once per tick. `listened` is the time since the last call during which
  // this side would have noticed a frame of the peer.
  void check_time(absl::Duration now, absl::Duration listened);

  bool dirty = false;           // whether it is in the transport's list of connections with frames to write
  bool read_scheduled = false;  // whether it is in the transport's list of connections to read again

 protected:
  // For an accepted connection: the peer begins the handshake.
  Connection(Transport* transport, std::string address, const wire::ServerHandshake& handshake);
  // For a connection that this side makes: the derived class calls connected() once it has reached the peer.
  Connection(Transport* transport, std::string address, const ConnectOptions& options, const wire::Nonce& nonce);

  // Implemented by each transport. Of these functions only read() and on_proven() may call the handler.

  // Queues a frame and seals its header. Its bytes count in queued_bytes() until they have left.
  virtual void push(const wire::Header& header, Buffer payload) = 0;
  // Sends queued bytes as far as the network accepts them now, up to one turn's worth. An error ends the connection.
  virtual absl::Status write() = 0;
  // Reads the bytes that have arrived. Also called without an event: after a silence, in case a wake-up was lost, and
  // after Transport::schedule_read().
  virtual void read() = 0;
  // Releases queued frames; called when the connection dies. The object itself lives until on_closed() has returned.
  virtual void release_frames() = 0;
  // Called when the handshake is done. A transport that has more to exchange before the first frame starts that
  // exchange in this function and calls come_up() later.
  virtual void on_proven() { come_up(); }

  // Called by derived classes.

  enum class Phase { kConnecting, kHandshake, kSettling, kUp, kDead };
  Phase phase() const { return phase_; }
  // Begins the handshake; called when the peer has been reached.
  void connected();
  void come_up();
  // Records that the peer has sent something.
  void heard() { silence_ = pinged_ = absl::ZeroDuration(); }
  // Returns the buffer for the payload of a frame whose header has arrived. The caller passes an error to refuse().
  absl::StatusOr<Buffer> place(const wire::Header& header);
  // Handles a complete and checked frame. The connection may be dead afterwards.
  void handle(const wire::Header& header, Buffer payload);
  // Closes the connection because of a frame of the peer. Puts the peer's address before the message. If `tell`, also
  // sends the message to the peer.
  void refuse(const absl::Status& status, bool tell = true);
  void die(absl::Status status);
  absl::Status broken(int error) const;                           // for die(), from an errno
  absl::Status closed_by_peer(absl::string_view why = {}) const;  // for die(), if the peer closed

 private:
  void on_handshake(const wire::Header& header, ConstBytes payload);
  void send_handshake(const std::vector<wire::HandshakeFrame>& frames);
  void enqueue(const wire::Header& header, Buffer payload);
  // Queues a PING or PONG. `number`: that of a measured PING; 0: the PING is for keep-alive.
  void enqueue_empty(wire::FrameType type, uint64_t frames, uint32_t number = 0);
  void send_measured_ping();
  // Writes the bytes that can still be sent without a wait. An error goes last, as a REJECT.
  void write_last(const absl::Status& status);

  Transport* const transport_;
  Phase phase_;
  Peer peer_;
  std::optional<wire::ClientHandshake> client_;
  std::optional<wire::ServerHandshake> server_;
  const absl::Duration handshake_deadline_;
  const KeepAlive keep_alive_;
  absl::Duration silence_;  // time for which the peer has been silent while this side listened
  absl::Duration pinged_;   // silence_ at the last PING
  static constexpr uint64_t kUnknown = UINT64_MAX;
  uint64_t sent_ = 0;            // number of frames that send() accepted; a PING carries it
  uint64_t arrived_ = kUnknown;  // number of those frames that have arrived, by the last PONG
  // Time since the last PING. silence_ does not replace it: a peer that sends PINGs itself is not silent, but does not
  // confirm that frames have arrived.
  absl::Duration since_ping_;
  AnswerTimes answer_times_;
  absl::Status status_;
};

}  // namespace gleaner::transport::stream
