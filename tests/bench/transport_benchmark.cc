// Frames over TCP on this machine beside plain blocking sockets: throughput by frame size, and ping-pong.
// Run: build/release/tests/transport_benchmark
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/base/env.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport {
namespace {

constexpr uint64_t kJob = 7;
constexpr size_t kWindowBytes = 8 << 20;  // queued at most

struct OneJob : wire::JobSecrets {
  wire::Secret secret{1};
  const wire::Secret* find(uint64_t job) const override { return job == kJob ? &secret : nullptr; }
};

// Counts what comes; sends it back when asked to.
struct End : Handler {
  void on_connected(Connection& connection) override { up = &connection; }
  absl::StatusOr<Buffer> on_header(Connection&, const wire::Header& header) override {
    return pool.take(header.payload_bytes);
  }
  void on_frame(Connection& connection, const wire::Header& header, Buffer payload) override {
    ++frames;
    if (echo) connection.send(header, std::move(payload));
  }
  void on_closed(Connection&, const absl::Status&) override { up = nullptr; }

  BufferPool pool;
  bool echo = false;
  Connection* up = nullptr;
  std::atomic<uint64_t> frames{0};
};

// A client on the benchmark's thread, a server on its own.
class Pair {
 public:
  explicit Pair(bool echo) {
    server_.echo = echo;
    receiver_ = tcp::Transport::create(system_.env(), {}, &server_, &job_).value();
    sender_ = tcp::Transport::create(system_.env(), {}, &client_, &job_).value();
    const Address address = receiver_->listen({"127.0.0.1", 0}).value();
    thread_ = std::thread([this] {
      while (!stop_) receiver_->poll(absl::Milliseconds(100));
    });
    (void)sender_->connect(address, {.job = kJob, .member = 1, .secret = job_.secret}).value();
    while (client_.up == nullptr) sender_->poll(absl::Milliseconds(10));
  }
  ~Pair() {
    stop_ = true;
    receiver_->wake();
    thread_.join();
  }
  Transport& sender() { return *sender_; }
  Connection& connection() { return *client_.up; }
  End& client() { return client_; }
  End& server() { return server_; }

 private:
  SystemEnv system_{LogOptions{"bench", LogLevel::kOff}};
  OneJob job_;
  End client_;
  End server_;
  std::unique_ptr<tcp::Transport> sender_;
  std::unique_ptr<tcp::Transport> receiver_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

wire::Header push() {
  wire::Header header;
  header.type = wire::FrameType::kPush;
  header.job = kJob;
  return header;
}

void frames(benchmark::State& state) {
  Pair pair(false);
  const auto size = static_cast<size_t>(state.range(0));
  Buffer payload = pair.client().pool.take(size);
  uint64_t sent = 0;
  for (auto _ : state) {
    const auto batch = std::max<uint64_t>(1, (4 << 20) / (size + wire::kHeaderBytes));
    for (uint64_t i = 0; i < batch; ++i) pair.connection().send(push(), payload);
    sent += batch;
    pair.sender().poll(absl::ZeroDuration());
    while (pair.connection().queued_bytes() > kWindowBytes) pair.sender().poll(absl::Milliseconds(100));
  }
  while (pair.server().frames < sent) pair.sender().poll(absl::Milliseconds(1));
  state.SetItemsProcessed(static_cast<int64_t>(sent));
  state.SetBytesProcessed(static_cast<int64_t>(sent * size));
}
BENCHMARK(frames)
    ->ArgName("bytes")
    ->Arg(0)
    ->Arg(1 << 10)
    ->Arg(16 << 10)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(4 << 20)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void frames_ping_pong(benchmark::State& state) {
  Pair pair(true);
  Buffer payload = pair.client().pool.take(static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    const uint64_t before = pair.client().frames;
    pair.connection().send(push(), payload);
    while (pair.client().frames == before) pair.sender().poll(absl::Milliseconds(100));
  }
}
BENCHMARK(frames_ping_pong)
    ->ArgName("bytes")
    ->Arg(0)
    ->Arg(4 << 10)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// Two ends of a plain TCP connection.
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
BENCHMARK(sockets)
    ->ArgName("bytes")
    ->Arg(0)
    ->Arg(1 << 10)
    ->Arg(16 << 10)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(4 << 20)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

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
BENCHMARK(sockets_ping_pong)
    ->ArgName("bytes")
    ->Arg(0)
    ->Arg(4 << 10)
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void checksum(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(wire::crc32c(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(checksum)->ArgName("bytes")->Arg(60)->Arg(16 << 10)->Arg(1 << 20)->Arg(4 << 20);

}  // namespace
}  // namespace gleaner::transport

BENCHMARK_MAIN();
