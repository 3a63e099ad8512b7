// Transport combines several transports: each connection uses the best transport that both ends have, and the next best
// if that one fails. Threads as in transport.h.
//
// connect() tries the endpoints that choose() returns, in order, and shares the time among them. The handler does not
// hear of a failed attempt; the next attempt follows. A connection that breaks while it is up is closed, as in any
// transport: the handler connects again, and connect() tries the endpoints in the same order again. A transport that
// fails three times in a row with a peer (history.h) is tried last with that peer for a minute. So a transport that
// connects but does not carry frames is not tried forever.
//
// The log gets a line each time that a peer is reached by another transport than the last time. The first time it gets
// a line if that transport is not the best that both have. A change to a transport of lower rank counts as a fallback.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/transport/any/connection.h"
#include "common/transport/any/history.h"
#include "common/transport/choose.h"
#include "common/transport/transport.h"

namespace gleaner::transport::any {

// A transport that may be used.
struct Option {
  Kind kind = Kind::kTcp;
  // Makes the transport. NotFound, Unimplemented: this machine has no transport of this kind, which is worth a warning
  // only if the user named the kind.
  std::function<absl::StatusOr<std::unique_ptr<transport::Transport>>(Handler*)> make;
  // For shm: the directory of its sockets, in the form of Endpoint::host and as a path on this side.
  std::string host;
  std::string directory;
};

enum class Reason : uint8_t { kStart, kConnect, kBroke };
inline constexpr size_t kReasons = 3;
// Returns the metric label of a reason to use a worse transport. "start": the better one can't be used on this machine.
// "connect": it could not connect. "broke": it connected, and broke again and again.
absl::string_view name_of(Reason reason);

struct Counters {
  std::array<uint32_t, kKinds> connections{};  // connections that are up, made or accepted
  std::array<std::array<std::array<uint64_t, kReasons>, kKinds>, kKinds> fallbacks{};  // [from][to][why]
  AdapterCounters adapters;
};

class Transport : public transport::Transport, public Pacer, public AdapterStatistics, public Spinner {
 public:
  // `options` contains tcp, and no kind twice. `preferences` says which of the options are used and how they rank.
  // `handler` must outlive the transport. An error names a transport that can't be made and that no other may replace:
  // tcp, or the last one of forced() preferences.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const std::vector<Option>& options,
                                                           const Preferences& preferences, Handler* handler);
  ~Transport() override = default;

  // Makes all transports listen, and returns tcp's address, which identifies the member; tcp always listens. Drops a
  // transport that can't listen, and fails if no other may replace it. May be called once.
  absl::StatusOr<Address> listen(const Address& address) override;
  // Returns the endpoints to tell other members, in order of preference. `advertise`, unless empty, replaces the host
  // that tcp and rdma listen on.
  std::vector<Endpoint> endpoints(const std::string& advertise = "") const;

  // Connects by tcp only.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  // Connects by the best of the peer's endpoints. `peer` names the peer in the log and in the history.
  // FailedPrecondition: the peers share no transport, so retrying cannot help; the message has the reason for each
  // transport.
  absl::StatusOr<transport::Connection*> connect(const std::string& peer, const std::vector<Endpoint>& theirs,
                                                 const ConnectOptions& options);

  void poll(absl::Duration timeout) override;
  void wait(absl::Duration timeout) override;
  void flush() override;
  int descriptor() const override { return tcp_->descriptor(); }
  bool pending() const override;
  bool spin_before_wait(absl::Duration timeout) override;
  void wake() override { tcp_->wake(); }
  void pace(double bits_per_second) override;         // paces all transports that can be paced
  AdapterCounters adapter_counters() const override;  // the sums over the transports
  Extensions extensions() override { return {.pacer = this, .adapter_statistics = this, .spinner = this}; }

  const Preferences& preferences() const { return preferences_; }
  Counters counters() const {
    Counters now = counters_;
    now.adapters = adapter_counters();
    return now;
  }

 private:
  // One of the transports, and its handler. The context of an inner connection is the Connection around it: from
  // connect() on if this side connects, and from on_connected() on if the connection was accepted.
  class Inner final : public Handler {
   public:
    Inner(Transport* owner, Option what) : option(std::move(what)), owner_(owner) {}
    void on_connected(transport::Connection& inner) override { owner_->on_connected(inner, option.kind); }
    absl::StatusOr<Buffer> on_header(transport::Connection& inner, const wire::Header& header) override {
      return owner_->handler_->on_header(ours(inner), header);
    }
    void on_frame(transport::Connection& inner, const wire::Header& header, Buffer payload) override {
      owner_->handler_->on_frame(ours(inner), header, std::move(payload));
    }
    void on_closed(transport::Connection& inner, const absl::Status& status) override {
      owner_->on_closed(inner, status);
    }

    const Option option;
    bool wanted = true;        // false: this is tcp, which the user did not list, so it only listens
    bool warning_due = false;  // the transport can't be used, and a warning about that is due
    absl::Status unusable;     // why `transport` is null
    Address address;           // the address on which it listens; an empty host: it does not listen
    // poll() has something to handle: the descriptor is readable, or spin_before_wait() returned true
    bool ready = false;
    std::unique_ptr<transport::Transport> transport;
    Spinner* spinner = nullptr;  // of `transport`, if it has one

   private:
    static Connection& ours(transport::Connection& inner) { return *static_cast<Connection*>(inner.context); }
    Transport* const owner_;
  };

  Transport(const Env& env, Preferences preferences, Handler* handler);
  absl::Status open(const std::vector<Option>& options);
  absl::Status add(const Option& option);
  absl::Status drop(Inner& inner, const absl::Status& why);
  void log_dropped();
  bool is_ready() const;
  void poll_inners();
  Inner* find(Kind kind) const;
  size_t rank(Kind kind) const;
  std::vector<Endpoint> mine() const;
  std::vector<Endpoint> in_order(const std::string& peer, std::vector<Endpoint> order) const;
  std::string why_not(const Choice& choice) const;
  absl::Duration now() const { return env_.clock->since_start(); }
  absl::Status try_next(Connection& connection);
  absl::Status try_one(Connection& connection, const Endpoint& endpoint);
  void on_connected(transport::Connection& inner, Kind kind);
  void on_closed(transport::Connection& inner, const absl::Status& status);
  void note_use(const Connection& connection);
  void count(Kind from, Kind to, Reason why);
  void forget(const Connection& connection);

  const Env env_;
  const Preferences preferences_;
  Handler* const handler_;
  History history_;
  Counters counters_;
  std::vector<std::unique_ptr<Connection>> connections_;  // outlive the transports, whose connections refer to them
  std::vector<std::unique_ptr<Inner>> inners_;            // in order of preference
  transport::Transport* tcp_ = nullptr;  // its wait() waits for all transports, since most events are its own
  uint32_t turns_without_tcp_ = 0;
};

}  // namespace gleaner::transport::any
