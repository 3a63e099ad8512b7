#include "tests/conformance/rig.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/time/clock.h"
#include "common/transport/inproc/transport.h"
#include "common/transport/rdma/transport.h"
#include "common/transport/shm/transport.h"
#include "common/transport/tcp/transport.h"
#include "tests/conformance/stand_in.h"

namespace gleaner::transport {
namespace {

// Two ends of the same class, which are polled one after the other.
template <typename Real>
class TwoEnds : public Rig {
 public:
  using Rig::Rig;
  Transport& client() override { return *client_; }
  Transport& server() override { return *server_; }
  void poll_both() override {
    client_->poll(absl::Milliseconds(1));
    server_->poll(absl::Milliseconds(1));
  }

 protected:
  std::unique_ptr<Real> client_;
  std::unique_ptr<Real> server_;
};

class TcpRig : public TwoEnds<tcp::Transport> {
 public:
  TcpRig(const Env& env, const Limits& limits) : TwoEnds(limits) {
    const tcp::Options options{
        {limits.ping_after, limits.idle_deadline}, limits.handshake_timeout, limits.max_strangers};
    client_ = tcp::Transport::create(env, options, &client_end, &job).value();
    server_ = tcp::Transport::create(env, options, &server_end, &job).value();
    address = server_->listen(address).value();
  }
};

// any::Transport over TCP and a second TCP transport that stands for RDMA. It must behave like a single transport.
class AnyRig : public TwoEnds<any::Transport> {
 public:
  AnyRig(const Env& env, const Limits& limits) : TwoEnds(limits) {
    const tcp::Options options{
        {limits.ping_after, limits.idle_deadline}, limits.handshake_timeout, limits.max_strangers};
    const std::vector<any::Option> both = {tcp_option(env, options, &job), stand_in(env, Kind::kRdma, options, &job)};
    client_ = any::Transport::create(env, both, Preferences(), &client_end).value();
    server_ = any::Transport::create(env, both, Preferences(), &server_end).value();
    address = server_->listen(address).value();
  }
};

class ShmRig : public TwoEnds<shm::Transport> {
 public:
  ShmRig(const Env& env, const Limits& limits) : TwoEnds(limits) {
    const shm::Options options{
        {{limits.ping_after, limits.idle_deadline}, limits.handshake_timeout, limits.max_strangers}};
    client_ = shm::Transport::create(env, options, &client_end, &job).value();
    server_ = shm::Transport::create(env, options, &server_end, &job).value();
    address = server_->listen({::testing::TempDir(), 0}).value();
  }
  Address nobody() const override { return {::testing::TempDir() + "/nobody.sock", 0}; }
};

class InprocRig : public Rig {
 public:
  InprocRig() : Rig({}), client_(&hub_, &client_end), server_(&hub_, &server_end) {
    address = server_.listen({"127.0.0.1", 1}).value();
  }
  Transport& client() override { return client_; }
  Transport& server() override { return server_; }
  Address nobody() const override { return {"127.0.0.1", 2}; }
  void poll_both() override {
    client_.poll(absl::ZeroDuration());
    server_.poll(absl::ZeroDuration());
  }

 private:
  inproc::Hub hub_;
  inproc::Transport client_;
  inproc::Transport server_;
};

class RdmaRig : public TwoEnds<rdma::Transport> {
 public:
  RdmaRig(const Env& env, const Limits& limits, const char* host, bool busy) : TwoEnds(limits) {
    rdma::Options options;
    options.stream = {{limits.ping_after, limits.idle_deadline}, limits.handshake_timeout, limits.max_strangers};
    if (busy) options.busy_poll = absl::Milliseconds(5);
    options.devices = devices("GLEANER_TEST_RDMA_PEER_DEVICE");
    client_ = rdma::Transport::create(env, options, &client_end, &job).value();
    options.devices = devices("GLEANER_TEST_RDMA_DEVICE");
    server_ = rdma::Transport::create(env, options, &server_end, &job).value();
    address = server_->listen({host, 0}).value();
  }
  // An address of the device, since a chosen device can't reach the loopback interface.
  Address nobody() const override { return {address.host, 1}; }

 private:
  // With several devices, connections have lanes.
  static std::vector<rdma::DeviceChoice> devices(const char* variable) {
    const char* const names = std::getenv(variable);
    return rdma::DeviceChoice::parse(names == nullptr ? "" : names).value();
  }
};

}  // namespace

std::vector<TransportKind> all_transports() {
  std::vector<TransportKind> kinds = {
      {"tcp", Kind::kTcp, true,
       [](const Env& env, const Limits& limits) { return std::make_unique<TcpRig>(env, limits); }},
      {"any", Kind::kTcp, true,
       [](const Env& env, const Limits& limits) { return std::make_unique<AnyRig>(env, limits); }},
      {"shm", Kind::kShm, true,
       [](const Env& env, const Limits& limits) { return std::make_unique<ShmRig>(env, limits); }},
      {"inproc", Kind::kInproc, false, [](const Env&, const Limits&) { return std::make_unique<InprocRig>(); }}};
  // tests/rdma-lab sets this variable to the address of an RDMA device in its guest.
  if (const char* const host = std::getenv("GLEANER_TEST_RDMA_HOST"); host != nullptr) {
    for (const bool busy : {false, true}) {
      kinds.push_back(
          {busy ? "rdma_busy" : "rdma", Kind::kRdma, true, [host, busy](const Env& env, const Limits& limits) {
             return std::make_unique<RdmaRig>(env, limits, host, busy);
           }});
    }
  }
  return kinds;
}

void End::on_connected(Connection& connection) {
  connections.push_back(&connection);
  if (when_connected) when_connected(connection);
}

absl::StatusOr<Buffer> End::on_header(Connection& connection, const wire::Header& header) {
  if (when_header) when_header(connection, header);
  if (!header_answer.ok()) return header_answer;
  return pool.take(header.payload_bytes);
}

void End::on_frame(Connection& connection, const wire::Header& header, Buffer payload) {
  if (keep_frames) received.push_back({header, {payload.bytes().begin(), payload.bytes().end()}});
  if (when_frame) when_frame(connection, header);
}

void End::on_closed(Connection& connection, const absl::Status& status) {
  std::erase(connections, &connection);
  closed.push_back(status);
  if (when_closed) when_closed(connection);
}

ConnectOptions connect_options(const OneJob& job, const Limits& limits) {
  return {.job = kJob,
          .member = 3,
          .secret = job.secret,
          .timeout = limits.handshake_timeout,
          .keep_alive = {limits.ping_after, limits.idle_deadline}};
}

absl::StatusOr<Connection*> Rig::connect(void* context) {
  ConnectOptions options = connect_options(job, limits_);
  options.context = context;
  return client().connect(address, options);
}

bool Rig::poll_until(const std::function<bool()>& done) {
  for (const absl::Time end = absl::Now() + absl::Minutes(1); absl::Now() < end; poll_both()) {
    if (done()) return true;
  }
  return done();
}

std::pair<Connection*, Connection*> Rig::connected() {
  const size_t before = server_end.connections.size();
  if (!connect().ok()) return {nullptr, nullptr};
  const bool up =
      poll_until([&] { return server_end.connections.size() > before && client_end.connections.size() > before; });
  if (!up) return {nullptr, nullptr};
  return {client_end.connections.back(), server_end.connections.back()};
}

}  // namespace gleaner::transport
