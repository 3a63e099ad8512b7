// Sends frames from one thread to another over tcp or rdma for some seconds, for bench/rdma/figures.
//   rdma_stream TRANSPORT HOST BYTES SECONDS [echo] [checksums] [busy] [unaligned]
// Prints as JSON:
//   frames, seconds, bytes_per_second
//   machine_seconds  CPU time of the whole machine, including kernel threads
//   own_seconds      CPU time of this process, which contains both ends
//   round_trip_us    with echo: the median round trip, with one frame in flight
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "bench/cpu_seconds.h"
#include "bench/stream.h"
#include "common/transport/rdma/transport.h"
#include "common/transport/tcp/transport.h"

namespace gleaner::transport {
namespace {

constexpr size_t kWindowBytes = 8 << 20;  // limit of bytes in flight

// Receives payloads into memory that starts `shift` bytes after a page boundary.
class ShiftingEnd : public CountingEnd {
 public:
  absl::StatusOr<Buffer> on_header(Connection&, const wire::Header& header) override {
    if (shift == 0) return pool.take(header.payload_bytes);
    return pool.take(header.payload_bytes + shift).slice(shift, header.payload_bytes);
  }
  size_t shift = 0;
};

// Returns the CPU time of all processors since boot, without idle time.
double machine_seconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0;
  file >> name >> user >> nice >> system >> idle >> wait >> irq >> soft;
  return (user + nice + system + irq + soft) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

struct Wanted {
  std::string transport;
  std::string host;
  size_t bytes = 0;
  double seconds = 0;
  std::set<std::string> flags;
};

// Makes a transport for one end. `devices` is the environment variable that names the RDMA devices of that end.
std::unique_ptr<Transport> make(const Env& env, const Wanted& wanted, const char* devices, Handler* handler,
                                const wire::JobSecrets* jobs) {
  if (wanted.transport == "tcp") return tcp::Transport::create(env, {}, handler, jobs).value();
  rdma::Options options;
  const char* const names = std::getenv(devices);
  options.devices = rdma::DeviceChoice::parse(names == nullptr ? "" : names).value();
  options.checksums = wanted.flags.contains("checksums");
  if (wanted.flags.contains("busy")) options.busy_poll = absl::Milliseconds(2);
  return rdma::Transport::create(env, options, handler, jobs).value();
}

void run(const Wanted& wanted) {
  const bool echo = wanted.flags.contains("echo");
  ShiftingEnd server_end, client_end;
  server_end.echo = echo;
  if (wanted.flags.contains("unaligned")) server_end.shift = client_end.shift = 20;
  const auto maker = [&](const char* devices) {
    return [&wanted, devices](const Env& env, Handler* handler, const wire::JobSecrets* jobs) {
      return make(env, wanted, devices, handler, jobs);
    };
  };
  Stream stream({wanted.host, 0}, &client_end, &server_end, maker("GLEANER_TEST_RDMA_PEER_DEVICE"),
                maker("GLEANER_TEST_RDMA_DEVICE"));
  Transport& client = stream.client();
  const Clock& clock = stream.clock();

  wire::Header header = push_header();
  header.payload_bytes = static_cast<uint32_t>(wanted.bytes);
  const size_t depth = echo ? 1 : std::max<size_t>(2, kWindowBytes / wanted.bytes);
  std::vector<Buffer> payloads;  // several, as in a real job
  for (size_t i = 0; i < std::min<size_t>(depth, 16); ++i)
    payloads.push_back(client_end.on_header(*client_end.up, header).value());
  std::vector<double> trips;
  uint64_t sent = 0;
  uint64_t warm_frames = 0;
  absl::Duration begin;
  double machine = 0;
  const auto send_until = [&](absl::Duration until) {
    while (clock.since_start() < until) {
      const absl::Duration left = clock.since_start();
      while (sent - server_end.frames < depth) client_end.up->send(header, payloads[sent++ % payloads.size()]);
      const uint64_t arrived = client_end.frames;
      do {
        client.poll(absl::Milliseconds(1));
      } while (echo && client_end.frames == arrived);
      if (echo) trips.push_back(absl::ToDoubleMicroseconds(clock.since_start() - left));
    }
  };
  send_until(clock.since_start() + absl::Milliseconds(700));
  trips.clear();
  warm_frames = server_end.frames;
  begin = clock.since_start();
  machine = machine_seconds();
  double own = cpu_seconds();
  send_until(begin + absl::Seconds(wanted.seconds));
  const uint64_t frames = server_end.frames - warm_frames;
  const double seconds = absl::ToDoubleSeconds(clock.since_start() - begin);
  machine = machine_seconds() - machine;
  own = cpu_seconds() - own;
  double median = 0;
  if (!trips.empty()) {
    std::nth_element(trips.begin(), trips.begin() + static_cast<ptrdiff_t>(trips.size() / 2), trips.end());
    median = trips[trips.size() / 2];
  }
  std::printf(
      "{\"frames\": %llu, \"seconds\": %.3f, \"bytes_per_second\": %.0f, \"machine_seconds\": %.2f, "
      "\"own_seconds\": %.2f, \"round_trip_us\": %.1f}\n",
      static_cast<unsigned long long>(frames), seconds,
      static_cast<double>(frames) * static_cast<double>(wanted.bytes) / seconds, machine, own, median);
  std::fflush(stdout);
  std::_Exit(0);  // drops the frames in flight
}

}  // namespace
}  // namespace gleaner::transport

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "expected: rdma_stream tcp|rdma HOST BYTES SECONDS [echo] [checksums] [busy] [unaligned]\n");
    return 2;
  }
  gleaner::transport::run({argv[1], argv[2], std::strtoull(argv[3], nullptr, 10), std::atof(argv[4]),
                           std::set<std::string>(argv + 5, argv + argc)});
}
