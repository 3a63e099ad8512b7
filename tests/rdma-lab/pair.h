// Pair: two rdma transports over the lab's wire. A test polls both in one thread, or the server in a second thread.
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

// Returns the address of the server's RDMA device; null outside the lab.
inline const char* lab_host() { return std::getenv("GLEANER_TEST_RDMA_HOST"); }

// Returns the devices of one side, which `variable` names. If the lab has two wires, there are several, and connections
// have lanes.
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
  // Makes a connection and returns the client's end once both ends are up; null if that fails.
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
