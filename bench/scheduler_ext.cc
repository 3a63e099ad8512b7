// Measures how long kube-scheduler waits for the extender: the calls filter and prioritize for one pod over many nodes.
// The calls go over HTTP on loopback, one after the other and with node names only, as kube-scheduler makes them.
//
//   scheduler_ext [--nodes 5000] [--calls 1000] [--connections 1] [--whole-nodes]
//
// The benchmark puts nodes into the extender's state in the same way as the extender's watches, and changes 500
// profiles a second during the measurement. It prints one line of JSON, with times in seconds. `cpu` is the CPU time of
// the whole process per call, including the client and the profile writes. On a busy machine it varies less than the
// latencies.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/cpu_seconds.h"
#include "common/base/env.h"
#include "common/flags/command.h"
#include "common/kube/process.h"
#include "common/placement/node_labels.h"
#include "scheduler-ext/http/extender.h"

namespace gleaner::extender {
namespace {

using nlohmann::json;

struct Flags {
  uint32_t nodes = 5000, calls = 1000, connections = 1;
  bool whole_nodes = false;
};

std::string name_of(uint32_t node) { return absl::StrCat("worker-pool-a-", node, ".example.internal"); }

std::shared_ptr<const api::NodeProfile> profile_of(uint32_t node, double spare_cpus) {
  api::NodeProfile profile;
  profile.meta.name = name_of(node);
  auto& status = profile.status;
  status.observed_time = absl::Now();
  status.cpus = 64;
  status.memory_bytes = uint64_t{256} << 30;
  status.bits_per_second = 25e9;
  status.speed_source = api::SpeedSource::kSysfs;
  // A quarter of the nodes has too little spare bandwidth for a summer.
  status.spare = {.cpus = spare_cpus,
                  .memory_bytes = uint64_t{32} << 30,
                  .bits_per_second = node % 4 == 0 ? 1e6 : 5e9 + node * 1e5};
  return std::make_shared<const api::NodeProfile>(std::move(profile));
}

void fill(State& state, uint32_t nodes) {
  for (uint32_t i = 0; i < nodes; ++i) {
    placement::Node node;
    node.name = name_of(i);
    node.ready = true;
    node.labels = {{"topology.kubernetes.io/region", "eu"},
                   {"topology.kubernetes.io/zone", absl::StrCat("zone-", i % 3)},
                   {"topology.kubernetes.io/rack", absl::StrCat("rack-", i / 20)},
                   {"kubernetes.io/hostname", node.name},
                   {"kubernetes.io/arch", "amd64"},
                   {"node.kubernetes.io/instance-type", "c64"}};
    state.set_node(std::make_shared<const placement::Node>(std::move(node)));
    state.set_profile(profile_of(i, 20));
  }
  for (uint32_t i = 0; i < 256; ++i) {  // workers of the job of the pod in body_of()
    placement::Pod worker;
    worker.key = absl::StrCat("team/digits-worker-", i);
    worker.job = "team/digits";
    worker.role = "worker";
    worker.node = name_of(i * 7 % nodes);
    state.set_pod(std::make_shared<const placement::Pod>(std::move(worker)));
  }
}

std::string body_of(const Flags& flags, const std::string& role) {
  json names = json::array(), items = json::array();
  for (uint32_t i = 0; i < flags.nodes; ++i) {
    names.push_back(name_of(i));
    if (flags.whole_nodes) {
      items.push_back({{"metadata", {{"name", name_of(i)}, {"annotations", {{"filling", std::string(6000, 'x')}}}}}});
    }
  }
  json args = {{"Pod",
                {{"metadata",
                  {{"name", "digits-summer-0"},
                   {"namespace", "team"},
                   {"labels", {{"gleaner.dev/job", "digits"}, {"gleaner.dev/role", role}}},
                   {"annotations", {{"kubernetes.io/egress-bandwidth", "2G"}}}}},
                 {"spec",
                  {{"containers",
                    {{{"name", "summer"}, {"resources", {{"requests", {{"cpu", "100m"}, {"memory", "256Mi"}}}}}}}}}}}},
               {"Nodes", nullptr},
               {"NodeNames", nullptr}};
  if (flags.whole_nodes) args["Nodes"] = {{"items", items}};
  if (!flags.whole_nodes) args["NodeNames"] = names;
  return args.dump();
}

// A keep-alive HTTP connection, like those of Go's client.
class Connection {
 public:
  explicit Connection(const Address& address) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(address.port);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval deadline{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) fail("can't connect");
  }
  ~Connection() { ::close(socket_); }

  // Posts `body` to `path`. Returns the number of bytes in the response's body.
  size_t post(const std::string& path, const std::string& body) {
    std::string request = absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n",
                                       "Content-Length: ", body.size(), "\r\n\r\n", body);
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t got = ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (got <= 0) fail("can't send");
      sent += static_cast<size_t>(got);
    }
    std::string answer;
    size_t head = std::string::npos, want = 0;
    while (head == std::string::npos || answer.size() < head + 4 + want) {
      const ssize_t got = ::recv(socket_, piece_.data(), piece_.size(), 0);
      if (got <= 0) fail("the answer ended early");
      answer.append(piece_, 0, static_cast<size_t>(got));
      if (head == std::string::npos && (head = answer.find("\r\n\r\n")) != std::string::npos) {
        const size_t length = answer.find("Content-Length: ");
        if (answer.compare(9, 3, "200") != 0 || length > head) fail(answer.substr(0, 200));
        want = std::stoul(answer.substr(length + 16));
      }
    }
    return want;
  }

 private:
  [[noreturn]] static void fail(const std::string& why) {
    std::cerr << "scheduler_ext: " << why << "\n";
    std::_Exit(1);
  }
  const int socket_;
  std::string piece_ = std::string(1 << 18, '\0');
};

json figures(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double part) {
    return seconds[std::min(seconds.size() - 1, static_cast<size_t>(part * static_cast<double>(seconds.size())))];
  };
  return {{"calls", seconds.size()}, {"p50", at(0.5)}, {"p99", at(0.99)}, {"max", seconds.back()}};
}

json measure(const Flags& flags, const Address& address, const std::string& path, const std::string& body) {
  std::vector<std::vector<double>> seconds(flags.connections);
  std::vector<std::thread> threads;
  std::atomic<size_t> bytes = 0;
  const double cpu_before = cpu_seconds();
  for (uint32_t connection = 0; connection < flags.connections; ++connection) {
    threads.emplace_back([&, connection] {
      Connection peer(address);
      for (uint32_t i = 0; i < 5; ++i) bytes = peer.post(path, body);  // warm-up
      for (uint32_t i = 0; i < flags.calls / flags.connections; ++i) {
        const absl::Time start = absl::Now();
        peer.post(path, body);
        seconds[connection].push_back(absl::ToDoubleSeconds(absl::Now() - start));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> all;
  for (const auto& part : seconds) all.insert(all.end(), part.begin(), part.end());
  json result = figures(std::move(all));
  result["cpu"] = (cpu_seconds() - cpu_before) / (result["calls"].get<double>() + 5 * flags.connections);
  result["request_bytes"] = body.size();
  result["answer_bytes"] = bytes.load();
  return result;
}

int run(const Flags& flags) {
  kube::prepare_process();
  const SystemEnv system({"bench", LogLevel::kWarning});
  State state(*system.env().clock, 1e7);
  fill(state, flags.nodes);
  prometheus::Registry registry;
  auto extender = Extender::start(system.env(), state, registry,
                                  {.listen = {"127.0.0.1", 0}, .levels = placement::default_label_levels()});
  if (!extender.ok()) {
    std::cerr << "scheduler_ext: " << extender.status().message() << "\n";
    return 1;
  }
  std::atomic<bool> done = false;
  std::thread agents([&] {
    for (uint32_t i = 0; !done; ++i) {
      state.set_profile(profile_of(i % flags.nodes, 10 + i % 20));
      absl::SleepFor(absl::Milliseconds(2));
    }
  });
  const Address address = (*extender)->address();
  json result = {{"nodes", flags.nodes}, {"connections", flags.connections}, {"whole_nodes", flags.whole_nodes}};
  result["summer_filter"] = measure(flags, address, "/filter", body_of(flags, "summer"));
  result["summer_prioritize"] = measure(flags, address, "/prioritize", body_of(flags, "summer"));
  result["worker_prioritize"] = measure(flags, address, "/prioritize", body_of(flags, "worker"));
  done = true;
  agents.join();
  std::cout << result.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace gleaner::extender

int main(int argc, char** argv) {
  gleaner::flags::Program app("scheduler_ext", "Latency of the scheduler extender's calls", "");
  gleaner::extender::Flags flags;
  app.add_number("--nodes", flags.nodes, "In the cluster").show_default().between(1, 100'000);
  app.add_number("--calls", flags.calls, "Of each kind").show_default().positive();
  app.add_number("--connections", flags.connections, "At once").show_default().between(1, 64);
  app.add_switch("--whole-nodes", flags.whole_nodes, "Nodes of 6 KB instead of names: nodeCacheCapable false");
  if (const std::optional<int> status = app.parse(argc, argv)) return *status;
  return gleaner::extender::run(flags);
}
