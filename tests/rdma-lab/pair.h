// Two rdma transports over the lab's wire, in one thread or with the server in its own.
#pragma once

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/env.h"
#include "common/transport/rdma/transport.h"
#include "tests/conformance/rig.h"

namespace gleaner::transport::rdma {

// The lab's device and address, to which the other device has the wire; null outside of it.
inline const char* lab_host() { return std::getenv("GLEANER_TEST_RDMA_HOST"); }

// Of one side of the wire; several where the lab has two wires, and then connections have lanes.
inline std::vector<DeviceChoice> lab_devices(const char* variable) {
  const char* const names = std::getenv(variable);
  return DeviceChoice::parse(names == nullptr ? "" : names).value();
}

struct Pair {
  Pair(const Env& env, Options client_options, Options server_options) {
    client_options.devices = lab_devices("GLEANER_TEST_RDMA_PEER_DEVICE");
    client = Transport::create(env, client_options, &client_end, &job).value();
    server_options.devices = lab_devices("GLEANER_TEST_RDMA_DEVICE");
    server = Transport::create(env, server_options, &server_end, &job).value();
    address = server->listen({lab_host(), 0}).value();
  }
  explicit Pair(const Env& env, const Options& options = {}) : Pair(env, options, options) {}

  absl::StatusOr<transport::Connection*> connect() {
    return client->connect(address, {.job = kJob, .member = 3, .secret = job.secret});
  }
  void poll_both() {
    client->poll(absl::Milliseconds(1));
    server->poll(absl::Milliseconds(1));
  }
  bool poll_until(const std::function<bool()>& done) {
    for (int i = 0; i < 20'000; ++i) {
      if (done()) return true;
      poll_both();
    }
    return done();
  }
  // The client's end, up on both sides; null: it did not come up.
  transport::Connection* connected() {
    const size_t before = server_end.connections.size();
    if (!connect().ok()) return nullptr;
    const bool up =
        poll_until([&] { return server_end.connections.size() > before && client_end.connections.size() > before; });
    return up ? client_end.connections.back() : nullptr;
  }

  OneJob job;
  End client_end;
  End server_end;
  std::unique_ptr<Transport> client;
  std::unique_ptr<Transport> server;
  Address address;
};

inline wire::Header push(uint64_t step) { return push_header(step); }

}  // namespace gleaner::transport::rdma
