// What moves frames between members. tcp/, shm/, inproc/ (and later rdma/) offer the same interface and pass the
// same conformance suite (tests/conformance); what one of them can do is asked through capabilities(), never assumed.
//
// Threads: a Transport, its connections and its handler belong to one thread, which calls poll(). Others may call
// wake(), and send() and flush() while that thread is in wait(). No callback runs inside send(), connect() or close():
// all come from poll(). Per frame, once warm: no allocation, no lock; frames that are queued together share one system
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/buffer.h"
#include "common/wire/frame.h"
#include "common/wire/handshake.h"

namespace gleaner::transport {

struct Capabilities {
  bool in_process = false;        // payloads arrive as the sender's own buffers
  bool one_sided = false;         // payloads are written into the peer's memory
  bool checksums_payload = true;  // sender fills and receiver checks payload_crc
};

// How soon a peer that says nothing is asked, and given up.
struct Patience {
  absl::Duration ping_after = absl::Seconds(1);      // of silence of an open connection
  absl::Duration idle_deadline = absl::Seconds(10);  // of silence, pings included: then it is closed
};

// Who is at the other end, known once the handshake is done.
struct Peer {
  uint64_t job = 0;
  uint32_t member = 0;    // of the session that connected to us; 0 where we connected, and know to whom
  bool accepted = false;  // true: it connected to us (so it is a worker session and we are the summer)
  std::string address;    // for messages to people
};

class Connection {
 public:
  virtual ~Connection() = default;

  // Queues a frame. Seals the header. The payload's buffer is held until the bytes have left. Frames leave in order.
  // Before on_connected() and after close() frames are dropped silently: the protocol above sends again on the next
  // connection.
  virtual void send(const wire::Header& header, Buffer payload) = 0;

  // Bytes queued here and not yet taken by the kernel (or the peer).
  virtual size_t queued_bytes() const = 0;

  // Closes; on_closed(status) follows from poll(), no other callback does. What is queued still goes as far as the
  // kernel takes it at once, then the message of `status`, if it is an error, for the peer's log; payload buffers are
  // let go in any case.
  virtual void close(absl::Status status) = 0;

  // Whether the peer has shown that all frames sent so far have reached it, whole and in order. Where we connected it
  // is asked each Patience::ping_after, and answers when it has nothing else to say; until then nobody knows.
  virtual bool all_arrived() const = 0;

  virtual const Peer& peer() const = 0;
  virtual Capabilities capabilities() const = 0;

  // The least time that the path there and back has taken of late; zero where it takes none or nobody knows.
  virtual absl::Duration round_trip() const { return absl::ZeroDuration(); }

  // For the handler's own use: which of its peers this is.
  void* context = nullptr;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // The handshake is done, both ways.
  virtual void on_connected(Connection& connection) = 0;
  // A header came that passed decode_header(): where its payload shall go. Returns a buffer of exactly
  // header.payload_bytes (> 0), or an error, which closes the connection with it. Not called where payloads arrive as
  // the sender's own buffers (capabilities().in_process).
  virtual absl::StatusOr<Buffer> on_header(Connection& connection, const wire::Header& header) = 0;
  // The frame is complete and its payload checked. Frames of handshake and liveness are the transport's own and not
  // reported.
  virtual void on_frame(Connection& connection, const wire::Header& header, Buffer payload) = 0;
  // Last callback of a connection, connected or not; the object dies when it returns. The status says why, with the
  // peer's address: OK for our own close(OkStatus()).
  virtual void on_closed(Connection& connection, const absl::Status& status) = 0;
};

struct ConnectOptions {
  uint64_t job = 0;
  uint32_t member = 0;  // who we are
  wire::Secret secret{};
  absl::Duration timeout = absl::Seconds(5);  // for connection and handshake together
  void* context = nullptr;                    // becomes Connection::context at once
  Patience patience;
};

// What adapters that move memory by themselves were asked for.
struct AdapterCounters {
  uint64_t registrations = 0;  // of memory, as each adapter counts it
  uint64_t copies = 0;         // payloads that were copied, since their memory was not, or could not be, registered
  uint64_t lanes = 0;          // that connections have got beside their own link

  AdapterCounters& operator+=(const AdapterCounters& other) {
    registrations += other.registrations;
    copies += other.copies;
    lanes += other.lanes;
    return *this;
  }
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Starts to accept. Returns the address in use (the port the system picked for port 0). AlreadyExists: port in use;
  // InvalidArgument: no such host.
  virtual absl::StatusOr<Address> listen(const Address& address) = 0;

  // Starts to connect; on_connected() or on_closed() follows.
  virtual absl::StatusOr<Connection*> connect(const Address& address, const ConnectOptions& options) = 0;

  // Waits up to `timeout` for something to happen and handles it; returns early after wake(). Also does the
  // transport's own time keeping: handshake timeouts, pings on idle connections, and closing (DeadlineExceeded) those
  // whose peer has said nothing for the idle deadline.
  virtual void poll(absl::Duration timeout) = 0;

  // The first half of poll(), by the same thread: only waits. Meanwhile another thread may send() and flush(), if it
  // keeps out of the rest of poll().
  virtual void wait(absl::Duration timeout) = 0;
  // What was sent leaves, as far as the network takes it, without poll(). What that may bring about, such as a broken
  // connection, is then pending().
  virtual void flush() = 0;

  // For loops that wait for other things too: readable (epoll, poll) when something has happened that poll() shall
  // handle; -1: there is none. To be waited on after linger() has found nothing. It does not show what our own calls
  // left to do, as send() does: that is pending(), and then poll() comes before any wait.
  virtual int descriptor() const = 0;
  virtual bool pending() const = 0;

  // From now on a wait also ends when this descriptor is readable, and the poll() after it sets `*readable`. Closing
  // the descriptor ends it. Unimplemented: not here.
  virtual absl::Status watch_beside(int /*descriptor*/, bool* /*readable*/) {
    return absl::UnimplementedError("this transport does not wait for others");
  }

  // Before a wait elsewhere, on descriptor(), of up to `timeout`: looks for some microseconds, where that pays, whether
  // something comes. True: poll() has something to handle. False: from here to the next poll(), descriptor() shows it;
  // not so with a timeout of zero, which is a look and no more.
  virtual bool linger(absl::Duration /*timeout*/) { return false; }

  // Makes a poll() in progress, or the next one, return at once. Any thread.
  virtual void wake() = 0;

  // Since it was made.
  virtual AdapterCounters adapter_counters() const { return {}; }

  // Most that leaves by the machine's network from now on, over the connections that others made to us: each may take
  // an equal share. More than 0; no limit to begin with. Nothing to those that take nothing from the network.
  virtual void pace(double /*bits_per_second*/) {}
};

}  // namespace gleaner::transport
