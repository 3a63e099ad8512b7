// Compares the shared-memory transport with memcpy, with a bare ring between two threads, and with TCP on loopback.
// Run: build/release/tests/shm_benchmark [RING_BYTES]
//
// It measures the throughput of 1 MiB frames that go from one set of buffers to another, for sets of several sizes, and
// the round trips of small frames. A set larger than the CPU caches resembles the tensors of a training step. A set of
// one buffer stays in the cache, where memcpy is fastest. The contenders take turns in each round, and the results are
// medians over the rounds.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "bench/stream.h"
#include "common/transport/shm/transport.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport {
namespace {

constexpr size_t kFrame = 1 << 20;
constexpr size_t kBytesPerRound = size_t{64} << 20;
constexpr int kRounds = 41;

using Buffers = std::vector<Buffer>;

Buffers take(BufferPool& pool, size_t bytes) {
  Buffers buffers;
  for (size_t i = 0; i < bytes / kFrame; ++i) {
    buffers.push_back(pool.take(kFrame));
    std::memset(buffers.back().bytes().data(), static_cast<int>(i), kFrame);
  }
  return buffers;
}

// Receives frames into the buffers of a set, in turn.
class PlacingEnd : public CountingEnd {
 public:
  absl::StatusOr<Buffer> on_header(Connection&, const wire::Header& header) override {
    if (header.payload_bytes != kFrame) return pool.take(header.payload_bytes);
    return set[next++ % set.size()];
  }
  Buffers set;
  size_t next = 0;
};

class Pair {
 public:
  template <typename Make>
  Pair(const Address& address, size_t set, const Make& make) {
    server_.set = take(server_.pool, set);
    stream_.emplace(address, &client_, &server_, make, make);
  }

  void send_all(const Buffers& buffers, size_t count) {
    const uint64_t before = server_.frames.load();
    for (size_t i = 0; i < count; ++i) client_.up->send(push_header(), buffers[i % buffers.size()]);
    while (client_.up->queued_bytes() > 0) stream_->client().poll(absl::Milliseconds(100));
    while (server_.frames.load(std::memory_order_acquire) < before + count) {
    }
  }
  void round_trips(const Buffer& payload, int count) {
    server_.echo = true;
    for (int i = 0; i < count; ++i) {
      const uint64_t before = client_.frames.load();
      client_.up->send(push_header(), payload);
      while (client_.frames.load() == before) stream_->client().poll(absl::Milliseconds(100));
    }
    server_.echo = false;
  }

 private:
  PlacingEnd client_;
  PlacingEnd server_;
  std::optional<Stream> stream_;
};

// Copies the same bytes through a ring between two threads that only copy and spin: an upper bound for shared memory on
// this machine. It does not use shm::Writer and shm::Reader, which the benchmark measures.
class BareRing {
 public:
  explicit BareRing(size_t bytes) : memory_(bytes) {}

  void send_all(const Buffers& from, const Buffers& to, size_t count) {
    std::thread reader([&] {
      for (size_t taken = 0; taken < count * kFrame; taken += kPiece) {
        while (written_.load(std::memory_order_acquire) == taken) {
        }
        std::memcpy(at(to, taken), memory_.data() + taken % memory_.size(), kPiece);
        taken_.store(taken + kPiece, std::memory_order_release);
      }
    });
    for (size_t written = 0; written < count * kFrame; written += kPiece) {
      while (written - taken_.load(std::memory_order_acquire) == memory_.size()) {
      }
      std::memcpy(memory_.data() + written % memory_.size(), at(from, written), kPiece);
      written_.store(written + kPiece, std::memory_order_release);
    }
    reader.join();
    written_ = taken_ = 0;
  }

 private:
  static constexpr size_t kPiece = 32 << 10;
  static std::byte* at(const Buffers& buffers, size_t position) {
    return buffers[position / kFrame % buffers.size()].bytes().data() + position % kFrame;
  }

  std::vector<std::byte> memory_;
  alignas(64) std::atomic<size_t> written_{0};
  alignas(64) std::atomic<size_t> taken_{0};
};

Pair make_shm(size_t set, size_t ring_bytes) {
  return Pair({"/dev/shm", 0}, set, [ring_bytes](const Env& env, Handler* handler, const wire::JobSecrets* jobs) {
    shm::Options options;
    if (ring_bytes > 0) options.ring_bytes = ring_bytes;
    return std::unique_ptr<Transport>(shm::Transport::create(env, options, handler, jobs).value());
  });
}

Pair make_tcp(size_t set) {
  return Pair({"127.0.0.1", 0}, set, [](const Env& env, Handler* handler, const wire::JobSecrets* jobs) {
    return std::unique_ptr<Transport>(tcp::Transport::create(env, {}, handler, jobs).value());
  });
}

double seconds(const std::function<void()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void compare_throughput(size_t set, size_t ring_bytes) {
  BufferPool pool;
  const Buffers from = take(pool, set);
  const Buffers to = take(pool, set);
  Pair shm = make_shm(set, ring_bytes);
  Pair tcp = make_tcp(set);
  const size_t count = kBytesPerRound / kFrame;
  BareRing ring(ring_bytes > 0 ? ring_bytes : shm::Options{}.ring_bytes);
  std::vector<double> by_memcpy, by_ring, by_shm, by_tcp;
  for (int round = 0; round < kRounds; ++round) {
    by_ring.push_back(seconds([&] { ring.send_all(from, to, count); }));
    by_memcpy.push_back(seconds([&] {
      for (size_t i = 0; i < count; ++i) {
        std::memcpy(to[i % to.size()].bytes().data(), from[i % from.size()].bytes().data(), kFrame);
      }
    }));
    by_shm.push_back(seconds([&] { shm.send_all(from, count); }));
    by_tcp.push_back(seconds([&] { tcp.send_all(from, count); }));
  }
  const auto gigabytes = [](double time) { return static_cast<double>(kBytesPerRound) / time / 1e9; };
  const double memcpy_time = median(by_memcpy), ring_time = median(by_ring), shm_time = median(by_shm),
               tcp_time = median(by_tcp);
  std::printf(
      "%3zu MiB in turn: memcpy %5.2f GB/s, bare ring %5.2f GB/s, shm %5.2f GB/s, tcp %5.2f GB/s; shm/memcpy %.2f, "
      "shm/bare ring %.2f, shm/tcp %.2f\n",
      set >> 20, gigabytes(memcpy_time), gigabytes(ring_time), gigabytes(shm_time), gigabytes(tcp_time),
      memcpy_time / shm_time, ring_time / shm_time, tcp_time / shm_time);
}

void compare_round_trips(size_t bytes, size_t ring_bytes) {
  constexpr int kCount = 2000;
  BufferPool pool;
  const Buffer payload = pool.take(bytes);
  Pair shm = make_shm(kFrame, ring_bytes);
  Pair tcp = make_tcp(kFrame);
  std::vector<double> by_shm, by_tcp;
  for (int round = 0; round < kRounds; ++round) {
    by_shm.push_back(seconds([&] { shm.round_trips(payload, kCount); }) / kCount);
    by_tcp.push_back(seconds([&] { tcp.round_trips(payload, kCount / 4); }) / (kCount / 4));
  }
  std::printf("%6zu B there and back: shm %6.2f us, tcp %6.2f us; tcp/shm %.1f\n", bytes, median(by_shm) * 1e6,
              median(by_tcp) * 1e6, median(by_tcp) / median(by_shm));
}

}  // namespace
}  // namespace gleaner::transport

int main(int argc, char** argv) {
  const size_t ring_bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  for (const size_t set : {64, 8, 1}) gleaner::transport::compare_throughput(set << 20, ring_bytes);
  for (const size_t bytes : {4, 4096, 65'536}) gleaner::transport::compare_round_trips(bytes, ring_bytes);
}
