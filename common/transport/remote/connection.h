// What every connection to another process has, whatever carries its frames: phases, handshake, liveness, its end.
//
//   connecting --connected()--> handshake --proven--> settling --come_up()--> up         any of them --die()--> dead
//
// A transport adds how frames leave and come: it is given whole frames by push(), and gives back those that came by
// place() and handle(). Driven by remote::Transport, in its thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/transport/transport.h"

namespace gleaner::transport::remote {

class Transport;

class Connection : public transport::Connection {
 public:
  void send(const wire::Header& header, Buffer payload) final;
  bool all_arrived() const final { return arrived_ == sent_; }
  void close(absl::Status status) final;
  const Peer& peer() const final { return peer_; }

  // What follows is for the transport.
  bool is_up() const { return phase_ == Phase::kUp; }
  bool is_dead() const { return phase_ == Phase::kDead; }
  const absl::Status& status() const { return status_; }  // why it is dead
  void flush();
  void look();  // read(), while it lives
  // Time keeping: `listened` is how long it could have heard from its peer since the last call.
  void check_time(absl::Duration now, absl::Duration listened);

  bool dirty = false;  // in the transport's list of connections with frames to write
  bool again = false;  // in its list of those to look at again

 protected:
  // Accepted: the other side begins the handshake.
  Connection(Transport* transport, std::string address, const wire::ServerHandshake& handshake);
  // To be made: connected() follows.
  Connection(Transport* transport, std::string address, const ConnectOptions& options, const wire::Nonce& nonce);

  // --- What differs. None of them calls back to the handler, but for read().

  // Queues a frame, whose header it seals. Its bytes are queued_bytes() until they have left.
  virtual void push(const wire::Header& header, Buffer payload) = 0;
  // Gives away of what is queued what is taken now, up to one turn's worth. An error is the connection's end.
  virtual absl::Status write() = 0;
  // Looks for what has come, without having been told of any: after a silence, in case a wake-up went missing.
  virtual void read() = 0;
  // It has died: lets go of what is queued. The object goes a little later.
  virtual void let_go() = 0;
  // The handshake is done. Whoever has more to exchange before the first frame does it now, and calls come_up() later.
  virtual void on_proven() { come_up(); }

  // --- For those who read and write.

  enum class Phase { kConnecting, kHandshake, kSettling, kUp, kDead };
  Phase phase() const { return phase_; }
  // The way to the peer is there: the handshake begins.
  void connected();
  void come_up();
  // Something came.
  void heard() { silence_ = pinged_ = absl::ZeroDuration(); }
  // Where the payload of a frame that begins shall go. An error is to be refuse()d.
  absl::StatusOr<Buffer> place(const wire::Header& header);
  // A whole and checked frame; the connection may be dead afterwards.
  void handle(const wire::Header& header, Buffer payload);
  // Closes for what the peer sent, with its address before the message.
  void refuse(const absl::Status& status, bool tell = true);
  void die(absl::Status status);
  absl::Status broken(int error) const;                           // for die(), with an errno
  absl::Status closed_by_peer(absl::string_view why = {}) const;  // the same, where the peer went

 private:
  void on_handshake(const wire::Header& header, ConstBytes payload);
  void send_handshake(const std::vector<wire::HandshakeFrame>& frames);
  void enqueue(const wire::Header& header, Buffer payload);
  void enqueue_empty(wire::FrameType type, uint64_t frames);
  // Writes what still is taken, an error as a REJECT last.
  void say_goodbye(const absl::Status& status);

  Transport* const transport_;
  Phase phase_;
  Peer peer_;
  std::optional<wire::ClientHandshake> client_;
  std::optional<wire::ServerHandshake> server_;
  const absl::Duration handshake_deadline_;
  const Patience patience_;
  absl::Duration silence_;  // of the peer, as far as we listened
  absl::Duration pinged_;   // silence_ at the last ping
  static constexpr uint64_t kUnknown = UINT64_MAX;
  uint64_t sent_ = 0;            // frames that send() took; a PING says how many went before it
  uint64_t arrived_ = kUnknown;  // of these, as the last PONG had it
  absl::Duration unasked_;       // since the last PING: a peer that pings is not silent, and says nothing of them
  absl::Status status_;
};

}  // namespace gleaner::transport::remote
