// Several transports behind one: each connection goes over the best that both ends have, and over the next best where
// that one fails.
//
// Threads as transport.h says. connect() tries what choose() gives, in order, sharing the time among them; a failed
// attempt is not told to the handler but followed by the next. A connection that breaks while it is up is closed, as
// any: the handler connects again, and the same transport is tried first. One that has failed three times in a row with
// a peer (could not connect where another could, or broke within ten seconds) comes last for a minute, so that one
// which connects and then does not carry is not tried forever. Each time that a peer comes to be reached otherwise than
// before, or than by its best, there is one line in the log, and a fallback is counted where that is worse.
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

// One transport to choose from.
struct Option {
  Kind kind = Kind::kTcp;
  // Makes it. NotFound, Unimplemented: this machine has nothing of the kind, which nobody needs to hear of who has not
  // named it.
  std::function<absl::StatusOr<std::unique_ptr<transport::Transport>>(Handler*)> make;
  // shm: whose directory it is (Endpoint::host), and where it is from here.
  std::string host;
  std::string directory;
};

enum class Reason : uint8_t { kStart, kConnect, kBroke };
inline constexpr size_t kReasons = 3;
// "start": it can't be had here; "connect": it could not connect; "broke": it did and broke, again and again.
absl::string_view name_of(Reason reason);

struct Counters {
  std::array<uint32_t, kKinds> connections{};                                          // up now, whoever made them
  std::array<std::array<std::array<uint64_t, kReasons>, kKinds>, kKinds> fallbacks{};  // from, to, why
  AdapterCounters adapters;
};

class Transport : public transport::Transport {
 public:
  // `options` has tcp, and no kind twice; `preferences` says which of them are used, and how they rank. `handler`
  // outlives it. An error names the transport that can't be had, although nothing may take its place.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const std::vector<Option>& options,
                                                           const Preferences& preferences, Handler* handler);
  ~Transport() override = default;

  // Of tcp, which always listens: it is what a member is known by. What else can't listen is done without. Once.
  absl::StatusOr<Address> listen(const Address& address) override;
  // What others are told, in order of preference. `advertise`: in place of the host that tcp and rdma listen on.
  std::vector<Endpoint> endpoints(const std::string& advertise = "") const;

  // By tcp alone.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  // `peer`: for the log, and to know it again. FailedPrecondition: nothing in common, and why.
  absl::StatusOr<transport::Connection*> connect(const std::string& peer, const std::vector<Endpoint>& theirs,
                                                 const ConnectOptions& options);

  void poll(absl::Duration timeout) override;
  void wait(absl::Duration timeout) override;
  void flush() override;
  int descriptor() const override { return tcp_->descriptor(); }
  bool pending() const override;
  bool linger(absl::Duration timeout) override;
  void wake() override { tcp_->wake(); }
  void pace(double bits_per_second) override;
  AdapterCounters adapter_counters() const override;

  const Preferences& preferences() const { return preferences_; }
  Counters counters() const {
    Counters now = counters_;
    now.adapters = adapter_counters();
    return now;
  }

 private:
  // One of the transports, and its handler. Its connections have ours as their context: those that we make at once,
  // others when they are up.
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
    bool wanted = true;     // tcp may only be there to listen
    bool missed = false;    // there is none, and somebody should hear of it
    absl::Status unusable;  // why there is none
    Address address;        // where it listens; host empty: it does not
    bool ready = false;     // its descriptor is readable
    std::unique_ptr<transport::Transport> transport;

   private:
    static Connection& ours(transport::Connection& inner) { return *static_cast<Connection*>(inner.context); }
    Transport* const owner_;
  };

  Transport(const Env& env, Preferences preferences, Handler* handler);
  absl::Status open(const std::vector<Option>& options);
  absl::Status add(const Option& option);
  absl::Status do_without(Inner& inner, const absl::Status& why);
  void tell_missing();
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
  std::vector<std::unique_ptr<Connection>> connections_;  // outlive the transports, which have them as contexts
  std::vector<std::unique_ptr<Inner>> inners_;            // in order of preference
  transport::Transport* tcp_ = nullptr;                   // does the waiting for all: most events are its own
  uint32_t turns_without_tcp_ = 0;
};

}  // namespace gleaner::transport::any
