// Compares frames over TCP on loopback with plain blocking sockets: throughput by frame size, and round trips.
// Run: build/release/tests/transport_benchmark
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <thread>
#include <vector>

#include "bench/stream.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport {
namespace {

constexpr size_t kWindowBytes = 8 << 20;  // limit of queued bytes

std::unique_ptr<Transport> make(const Env& env, Handler* handler, const wire::JobSecrets* jobs) {
  return tcp::Transport::create(env, {}, handler, jobs).value();
}

void add_sizes(benchmark::internal::Benchmark* benchmark, std::initializer_list<int64_t> payload_bytes) {
  benchmark->ArgName("bytes")->MeasureProcessCPUTime()->UseRealTime();
  for (const int64_t bytes : payload_bytes) benchmark->Arg(bytes);
}
void in_one_direction(benchmark::internal::Benchmark* benchmark) {
  add_sizes(benchmark, {0, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 4 << 20});
}
void there_and_back(benchmark::internal::Benchmark* benchmark) {
  add_sizes(benchmark, {0, 4 << 10, 64 << 10, 1 << 20});
}

void frames(benchmark::State& state) {
  CountingEnd client, server;
  Stream stream({"127.0.0.1", 0}, &client, &server, make, make);
  const auto size = static_cast<size_t>(state.range(0));
  Buffer payload = client.pool.take(size);
  uint64_t sent = 0;
  for (auto _ : state) {
    const auto batch = std::max<uint64_t>(1, (4 << 20) / (size + wire::kHeaderBytes));
    for (uint64_t i = 0; i < batch; ++i) client.up->send(push_header(), payload);
    sent += batch;
    stream.client().poll(absl::ZeroDuration());
    while (client.up->queued_bytes() > kWindowBytes) stream.client().poll(absl::Milliseconds(100));
  }
  while (server.frames < sent) stream.client().poll(absl::Milliseconds(1));
  state.SetItemsProcessed(static_cast<int64_t>(sent));
  state.SetBytesProcessed(static_cast<int64_t>(sent * size));
}
BENCHMARK(frames)->Apply(in_one_direction);

void frames_ping_pong(benchmark::State& state) {
  CountingEnd client, server;
  server.echo = true;
  Stream stream({"127.0.0.1", 0}, &client, &server, make, make);
  Buffer payload = client.pool.take(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    const uint64_t before = client.frames;
    client.up->send(push_header(), payload);
    while (client.frames == before) stream.client().poll(absl::Milliseconds(100));
  }
}
BENCHMARK(frames_ping_pong)->Apply(there_and_back);

// The two ends of a plain TCP connection.
struct Plain {
  Plain() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool made = bind(listener, generic, size) == 0 && listen(listener, 1) == 0 &&
                      getsockname(listener, generic, &size) == 0 && ::connect(client, generic, size) == 0;
    if (!made) std::abort();
    server = accept(listener, nullptr, nullptr);
    close(listener);
    const int one = 1;
    for (const int end : {client, server}) setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  ~Plain() {
    close(client);
    close(server);
  }
  int client;
  int server;
};

bool send_all(int descriptor, const std::vector<char>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = send(descriptor, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int descriptor, std::vector<char>& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t got = recv(descriptor, bytes.data() + at, bytes.size() - at, 0);
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

void sockets(benchmark::State& state) {
  Plain plain;
  const auto size = static_cast<size_t>(state.range(0)) + wire::kHeaderBytes;
  std::thread reader([&] {
    for (std::vector<char> bytes(size); receive_all(plain.server, bytes);) {
    }
  });
  const std::vector<char> bytes(size);
  for (auto _ : state) send_all(plain.client, bytes);
  shutdown(plain.client, SHUT_WR);
  reader.join();
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sockets)->Apply(in_one_direction);

void sockets_ping_pong(benchmark::State& state) {
  Plain plain;
  const auto size = static_cast<size_t>(state.range(0)) + wire::kHeaderBytes;
  std::thread echo([&] {
    for (std::vector<char> bytes(size); receive_all(plain.server, bytes) && send_all(plain.server, bytes);) {
    }
  });
  std::vector<char> bytes(size);
  for (auto _ : state) {
    send_all(plain.client, bytes);
    receive_all(plain.client, bytes);
  }
  shutdown(plain.client, SHUT_WR);
  echo.join();
}
BENCHMARK(sockets_ping_pong)->Apply(there_and_back);

void checksum(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(wire::crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(checksum)->ArgName("bytes")->Arg(60)->Arg(16 << 10)->Arg(1 << 20)->Arg(4 << 20);

}  // namespace
}  // namespace gleaner::transport

BENCHMARK_MAIN();
