// A peer in a separate process, which a test may kill:
//   rdma_peer serve HOST          prints its port, then receives frames
//   rdma_peer push HOST PORT      connects, and pushes frames of 1 MiB as fast as possible until it is disconnected
//   rdma_peer little_memory       makes a transport as the user nobody, who may lock 64 KiB, and prints the status
#include <grp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/base/env.h"
#include "common/transport/rdma/transport.h"
#include "tests/conformance/one_job.h"

namespace gleaner::transport::rdma {
namespace {

constexpr size_t kBytes = 1 << 20;

struct End : Handler {
  void on_connected(transport::Connection& connection) override { up = &connection; }
  absl::StatusOr<Buffer> on_header(transport::Connection&, const wire::Header& header) override {
    return pool.take(header.payload_bytes);
  }
  void on_frame(transport::Connection&, const wire::Header&, Buffer) override {}
  void on_closed(transport::Connection&, const absl::Status&) override { closed = true; }

  BufferPool pool;
  transport::Connection* up = nullptr;
  bool closed = false;
};

int serve(const Env& env, const std::string& host) {
  OneJob job;
  End end;
  const auto server = Transport::create(env, {}, &end, &job).value();
  std::printf("%d\n", server->listen({host, 0}).value().port);
  std::fflush(stdout);
  for (;;) server->poll(absl::Milliseconds(100));
}

int push(const Env& env, const Address& address) {
  OneJob job;
  End end;
  const auto client = Transport::create(env, {}, &end, nullptr).value();
  (void)client->connect(address, {.job = kJob, .member = 3, .secret = job.secret}).value();
  for (uint64_t step = 0; !end.closed; client->poll(absl::Milliseconds(1))) {
    while (end.up != nullptr && end.up->queued_bytes() < 8 * kBytes) {
      Buffer payload = end.pool.take(kBytes);
      std::fill(payload.bytes().begin(), payload.bytes().end(), std::byte{static_cast<uint8_t>(step)});
      end.up->send(push_header(step++), std::move(payload));
    }
  }
  return 3;
}

int with_little_memory(const Env& env) {
  const rlimit little{64 << 10, 64 << 10};
  setrlimit(RLIMIT_MEMLOCK, &little);
  if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(65534) != 0) return 1;
  End end;
  const auto made = Transport::create(env, {}, &end, nullptr);
  std::printf("%s\n", made.status().ToString().c_str());
  return 0;
}

int run(const std::string& what, int count, char** arguments) {
  const SystemEnv system(LogOptions{"peer", LogLevel::kWarning});
  if (what == "serve" && count == 1) return serve(system.env(), arguments[0]);
  if (what == "push" && count == 2) {
    return push(system.env(), {arguments[0], static_cast<uint16_t>(std::atoi(arguments[1]))});
  }
  if (what == "little_memory") return with_little_memory(system.env());
  std::fprintf(stderr, "expected: rdma_peer serve HOST | push HOST PORT | little_memory\n");
  return 2;
}

}  // namespace
}  // namespace gleaner::transport::rdma

int main(int argc, char** argv) { return gleaner::transport::rdma::run(argc > 1 ? argv[1] : "", argc - 2, argv + 2); }
