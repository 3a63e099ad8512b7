// Transport moves frames between members. tcp/, shm/, inproc/ and rdma/ implement this interface and pass the same
// conformance suite (tests/conformance); any/ chooses among them for each peer. Transport declares the functions that
// all of them have. Connection::capabilities() returns the abilities of a connection, and Transport::extensions() the
// further functions of a transport.
//
// A connection begins with connect() on one side and is *accepted* by the other side, which listens. After the
// handshake (wire/handshake.h; there is none within a process) it is *up*: on_connected() runs, and send() takes frames
// until on_closed().
//
// Threads: a Transport, its connections and its handler belong to one thread, which calls poll(). Other threads may
// call wake() at any time. While that thread is in wait(), one other thread may call send(), flush() and pending().
// Callbacks run inside poll() only, never inside send(), connect() or close(). Once warm, a frame costs no allocation
// and no lock, and frames that are queued together share one system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/buffer.h"
#include "common/transport/endpoint.h"
#include "common/wire/frame.h"
#include "common/wire/handshake.h"

namespace gleaner::transport {

struct Capabilities {
  bool in_process = false;        // the receiver gets the sender's own payload buffers
  bool one_sided = false;         // large payloads are written directly into the receiver's buffers
  bool checksums_payload = true;  // the sender fills payload_crc and the receiver checks it
};

// Keep-alive times of a connection that is up.
struct KeepAlive {
  absl::Duration ping_after = absl::Seconds(1);      // after this much silence this side pings the peer
  absl::Duration idle_deadline = absl::Seconds(10);  // after this much silence this side closes the connection
};

// Describes the other end of a connection; complete once the handshake is done.
struct Peer {
  uint64_t job = 0;
  uint32_t member = 0;    // the peer's member number if `accepted`, else 0
  bool accepted = false;  // true: the peer, a worker's session, connected to this side, a summer
  std::string address;    // for log and error messages
};

// The bytes that this side of a connection has sent, and that the peer's kernel has confirmed.
struct Sent {
  uint64_t bytes = 0;
  absl::Duration busy;  // time during which bytes were not confirmed yet
};

class Connection {
 public:
  virtual ~Connection() = default;

  // Queues a frame and seals its header. Holds the payload's buffer until its bytes have left. Frames leave in order.
  // Before on_connected() and after close() the frame is dropped silently: the caller's protocol sends it again on the
  // next connection.
  virtual void send(const wire::Header& header, Buffer payload) = 0;

  // Returns the number of queued bytes that neither the kernel nor the peer has accepted yet.
  virtual size_t queued_bytes() const = 0;

  // Closes the connection; the only callback that follows is on_closed(status), from poll(). Queued frames still leave
  // as far as the kernel accepts them in this call. If `status` is an error, its message follows them, for the peer's
  // log. All payload buffers are released.
  virtual void close(absl::Status status) = 0;

  // Returns whether the peer has confirmed that all frames sent so far have arrived, complete and in order. Until then
  // the connecting side sends a PING every KeepAlive::ping_after. The peer confirms by a PONG, unless it has frames
  // queued itself.
  virtual bool all_arrived() const = 0;

  virtual const Peer& peer() const = 0;
  virtual Kind kind() const = 0;  // the transport that carries the connection
  virtual Capabilities capabilities() const = 0;

  // Returns the least round-trip time of recent measurements; zero within a process or if unknown.
  virtual absl::Duration round_trip() const { return absl::ZeroDuration(); }
  // Returns what this side has sent since the connection was made; nothing if the transport does not know it.
  virtual std::optional<Sent> sent() const { return std::nullopt; }

  // Measures answer_time(): sends `times` PINGs, each one when the PONG of the one before has arrived. Ends an earlier
  // measurement. Has no effect within a process or while the connection is not up.
  virtual void ping(uint32_t times) { static_cast<void>(times); }
  // Returns whether ping() waits for a PONG. A peer that has frames queued sends none.
  virtual bool is_pinging() const { return false; }
  // Returns the usual time from a PING of ping() to its PONG, between this process and the peer's: the lower quartile
  // of the latest ones; zero within a process or if unknown. It contains round_trip() and the work of both processes.
  virtual absl::Duration answer_time() const { return absl::ZeroDuration(); }

  // For the handler's own use, for example a pointer to its record of the peer.
  void* context = nullptr;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // Called when the connection is up.
  virtual void on_connected(Connection& connection) = 0;
  // Returns the buffer for a payload, given a header that passed decode_header(): a buffer of exactly
  // header.payload_bytes (> 0), or an error, with which the connection is closed. Not called on connections on which
  // the receiver gets the sender's own buffers (capabilities().in_process).
  virtual absl::StatusOr<Buffer> on_header(Connection& connection, const wire::Header& header) = 0;
  // Receives a complete frame; the payload is checked if the transport checks payloads. The transport handles handshake
  // and keep-alive frames itself and does not report them.
  virtual void on_frame(Connection& connection, const wire::Header& header, Buffer payload) = 0;
  // The last callback of a connection, whether it was up or not. The connection is destroyed when on_closed() returns.
  // `status` is the reason for the end, with the peer's address; it is OK after this side's close(OkStatus()).
  virtual void on_closed(Connection& connection, const absl::Status& status) = 0;
};

struct ConnectOptions {
  uint64_t job = 0;
  uint32_t member = 0;  // this side's member number
  wire::Secret secret{};
  absl::Duration timeout = absl::Seconds(5);  // for connecting and handshake together
  void* context = nullptr;                    // the new connection's Connection::context
  KeepAlive keep_alive;
};

// Counts of the work of RDMA adapters.
struct AdapterCounters {
  uint64_t registrations = 0;  // memory registrations, each adapter's counted separately
  uint64_t copies = 0;         // payloads copied because their memory was not, or could not be, registered
  uint64_t lanes = 0;          // lanes (rdma/lane.h) that have come up

  AdapterCounters& operator+=(const AdapterCounters& other) {
    registrations += other.registrations;
    copies += other.copies;
    lanes += other.lanes;
    return *this;
  }
};

// Limits the rate at which a transport's accepted connections send.
class Pacer {
 public:
  // Divides the rate equally among the accepted connections. `bits_per_second` is more than 0. There is no limit until
  // the first call.
  virtual void pace(double bits_per_second) = 0;

 protected:
  ~Pacer() = default;
};

// Counts the work of the adapters that a transport uses.
class AdapterStatistics {
 public:
  // Returns the counts since the transport was made.
  virtual AdapterCounters adapter_counters() const = 0;

 protected:
  ~AdapterStatistics() = default;
};

// Waits for descriptors of others, such as another transport, together with the transport's own.
class DescriptorWatcher {
 public:
  // Lets every wait also end when `descriptor` is readable; the next poll() then sets `*readable`.
  virtual absl::Status watch_beside(int descriptor, bool* readable) = 0;
  // Ends watch_beside(). Must be called before the descriptor is closed.
  virtual void unwatch(int descriptor) = 0;

 protected:
  ~DescriptorWatcher() = default;
};

// Looks for events that a transport's descriptor does not show at once.
class Spinner {
 public:
  // Spins for some microseconds, where that pays, before the caller waits up to `timeout` on the transport's
  // descriptor(). Returns true if poll() has something to handle. After false, the descriptor shows all events until
  // the next poll(). A `timeout` of zero only looks once, and does not prepare the descriptor for a wait.
  virtual bool spin_before_wait(absl::Duration timeout) = 0;

 protected:
  ~Spinner() = default;
};

// The interfaces that a transport implements besides Transport. Null: the transport does not have this extension. The
// pointers are valid as long as the transport.
struct Extensions {
  Pacer* pacer = nullptr;
  const AdapterStatistics* adapter_statistics = nullptr;
  DescriptorWatcher* descriptor_watcher = nullptr;
  Spinner* spinner = nullptr;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Starts to accept connections. Returns the address in use; the port that the system chose replaces port 0.
  // AlreadyExists: the port is in use. InvalidArgument: there is no such host.
  virtual absl::StatusOr<Address> listen(const Address& address) = 0;

  // Starts to connect; on_connected() or on_closed() follows.
  virtual absl::StatusOr<Connection*> connect(const Address& address, const ConnectOptions& options) = 0;

  // Waits up to `timeout` for events and handles them; returns early after wake(). Also enforces timeouts: closes
  // connections whose handshake takes too long, pings idle ones, and closes (DeadlineExceeded) those whose peer has
  // been silent for KeepAlive::idle_deadline.
  virtual void poll(absl::Duration timeout) = 0;

  // Waits for events, as poll() does, but does not handle them. The thread that calls poll() calls wait(). Meanwhile
  // another thread may call send() and flush(), but not while poll() handles events.
  virtual void wait(absl::Duration timeout) = 0;
  // Sends queued frames, as far as the network accepts them, without poll(). poll() handles the consequences, such as a
  // broken connection; pending() is true until then.
  virtual void flush() = 0;

  // Returns a descriptor for event loops that also wait for other events; -1: there is none. The descriptor is readable
  // (epoll, poll) when poll() has something to handle. If the transport has a Spinner, the loop waits on the descriptor
  // only after spin_before_wait() has returned false. The descriptor does not show work that the caller's own calls
  // left, such as frames queued by send(): pending() does, and then the loop calls poll() before any wait.
  virtual int descriptor() const = 0;
  virtual bool pending() const = 0;

  // Ends the poll() or wait() in progress, or else the next one, without a further wait. Any thread may call it.
  virtual void wake() = 0;

  virtual Extensions extensions() { return {}; }
};

}  // namespace gleaner::transport
