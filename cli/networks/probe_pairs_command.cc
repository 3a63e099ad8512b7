// gleaner probe pairs: measures each two hosts of a file, one pair at a time, and writes the probes.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/launcher/hosts.h"
#include "cli/launcher/marked_lines.h"
#include "cli/launcher/process.h"
#include "cli/memory_file.h"
#include "cli/networks/probe_commands.h"
#include "cli/networks/progress_report.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "cli/self/own_program.h"
#include "cli/token_file.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"
#include "common/base/env.h"
#include "common/base/names.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"
#include "common/topology/latency.h"
#include "common/topology/overheads.h"
#include "common/topology/probes.h"

namespace gleaner::cli {
namespace {

using launcher::Host;
using launcher::Process;

constexpr absl::Duration kStartTimeout = absl::Seconds(30);  // of a command on a host, which SSH may have to reach
constexpr absl::Duration kPairTimeout = absl::Seconds(40);
constexpr size_t kMostComplaint = 1000;  // bytes of a command's standard error that a message has

struct ProbePairsFlags {
  std::string hosts, token_file;
};

// Appends what the stream has now. Returns whether more may come.
bool read_more(const Descriptor& stream, std::string& text) {
  std::array<char, 4096> part;
  const ssize_t got = ::read(stream.get(), part.data(), part.size());
  if (got > 0) text.append(part.data(), static_cast<size_t>(got));
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

// A command on a host, whose standard output is read line by line from its marker on. The destructor ends it.
class Child {
 public:
  // Appends --marker MARKER to the arguments. The marker should occur in no greeting.
  static absl::StatusOr<std::unique_ptr<Child>> start(const Host& host, std::vector<std::string> arguments,
                                                      const std::string& marker) {
    arguments.insert(arguments.end(), {"--marker", marker});
    auto process = Process::spawn({launcher::on_host(host, {}, arguments), {}});
    if (!process.ok())
      return absl::Status(process.status().code(), absl::StrCat(host.address, ": ", process.status().message()));
    return std::unique_ptr<Child>(new Child(host.address, marker, *std::move(process)));
  }
  ~Child() { process_.reap(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns the next line, without its end. Unavailable: the command has ended, or has written no line in time.
  absl::StatusOr<std::string> next_line(const Clock& clock, absl::Duration timeout) {
    const absl::Duration deadline = clock.since_start() + timeout;
    bool may_complain = true;
    for (;;) {
      if (std::optional<std::string> line = lines_.next()) return *std::move(line);
      const auto left = absl::ToInt64Milliseconds(deadline - clock.since_start());
      if (left <= 0) return absl::UnavailableError(absl::StrCat(address_, ": ", lack_of_lines(timeout)));
      std::array<pollfd, 2> streams = {{{output_.get(), POLLIN, 0}, {may_complain ? errors_.get() : -1, POLLIN, 0}}};
      if (::poll(streams.data(), streams.size(), static_cast<int>(left)) <= 0) continue;
      // A command whose errors nobody reads stands still once their pipe is full.
      if (streams[1].revents != 0) may_complain = read_errors();
      if (streams[0].revents == 0) continue;
      std::string part;
      const bool goes_on = read_more(output_, part);
      lines_.add(part);
      if (!goes_on) return absl::UnavailableError(absl::StrCat(address_, ": ", complaint()));
    }
  }

 private:
  Child(std::string address, const std::string& marker, Process process)
      : address_(std::move(address)),
        process_(process),
        output_(process.output()),
        errors_(process.errors()),
        lines_(marker) {}

  // Keeps the end of what the command has written to standard error. Returns whether more may come.
  bool read_errors() {
    const bool goes_on = read_more(errors_, complaint_);
    if (complaint_.size() > kMostComplaint) complaint_.erase(0, complaint_.size() - kMostComplaint);
    return goes_on;
  }

  std::string lack_of_lines(absl::Duration timeout) const {
    return absl::StrCat(lines_.has_marker() ? "no measurement within " : "the command has not begun within ",
                        absl::FormatDuration(timeout));
  }

  // Returns the last of what the command has written to standard error.
  std::string complaint() {
    pollfd errors{errors_.get(), POLLIN, 0};
    while (::poll(&errors, 1, 1000) > 0 && read_errors()) continue;
    if (complaint_.empty()) return "the command has ended without a word";
    return std::string(absl::StripSuffix(complaint_, "\n"));
  }

  const std::string address_;
  Process process_;
  const Descriptor output_, errors_;
  launcher::MarkedLines lines_;
  std::string complaint_;
};

// Measures pairs of hosts.
class Pairs {
 public:
  // `marker` has no blanks, which SSH would not pass on.
  Pairs(const Env& env, std::vector<Host> hosts, std::string token_file, std::string marker)
      : env_(env), hosts_(std::move(hosts)), token_file_(std::move(token_file)), marker_(std::move(marker)) {
    const absl::StatusOr<std::filesystem::path> own = own_program();
    program_ = own.ok() ? own->string() : "gleaner";  // a name is looked up in PATH
  }

  absl::StatusOr<topology::Probes> measure() {
    GLN_RETURN_IF_ERROR(start_servers());
    const size_t count = hosts_.size();
    topology::Probes probes;
    for (const Host& host : hosts_) probes.names.push_back(host.address);
    probes.latency_seconds.resize(count * count);
    probes.bits_per_second.resize(count * count);
    std::vector<double> overheads(count * count);  // seconds, by two hosts
    ProgressReport progress(*env_.clock, own_command("probe pairs"));
    size_t done = 0;
    for (size_t from = 0; from + 1 < count; ++from) {
      std::vector<std::string> arguments = {program_, "probe", "peers", "--token-file", token_file_};
      arguments.insert(arguments.end(), listening_.begin() + static_cast<std::ptrdiff_t>(from), listening_.end());
      GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Child> client, Child::start(hosts_[from], arguments, marker_));
      for (size_t to = from + 1; to < count; ++to) {
        const auto line = client->next_line(*env_.clock, kPairTimeout);
        if (!line.ok()) return absl::Status(line.status().code(), absl::StrCat(line.status().message(), remedy(to)));
        GLN_ASSIGN_OR_RETURN(const ProbedPath path, parse_line(*line));
        for (const size_t entry : {from * count + to, to * count + from}) {
          probes.latency_seconds[entry] = topology::seconds_of_microseconds(path.latency_us);
          probes.bits_per_second[entry] = path.bits_per_second;
          overheads[entry] = topology::seconds_of_microseconds(path.overhead_us);
        }
        ++done;
        progress.update([&] { return absl::StrCat(done, " of ", count * (count - 1) / 2, " pairs are measured"); });
      }
    }
    probes.overhead_seconds = topology::host_overheads(overheads, count);
    return probes;
  }

 private:
  // Starts a server on each host but the first, which no pair needs.
  absl::Status start_servers() {
    for (size_t host = 1; host < hosts_.size(); ++host) {
      const std::string listen = Address{hosts_[host].address, 0}.to_string();
      GLN_ASSIGN_OR_RETURN(
          servers_.emplace_back(),
          Child::start(hosts_[host], {program_, "probe", "serve", "--listen", listen, "--token-file", token_file_},
                       marker_));
    }
    for (const auto& server : servers_) {
      GLN_ASSIGN_OR_RETURN(listening_.emplace_back(), server->next_line(*env_.clock, kStartTimeout));
    }
    return absl::OkStatus();
  }

  // Returns advice for the error of a path to this host, which may be at an address that leads each host to itself.
  std::string remedy(size_t to) const {
    const auto address = Address::parse(listening_[to - 1]);
    if (!address.ok() || !is_loopback(address->host)) return "";
    return absl::StrCat("; host ", quote(hosts_[to].address), " calls itself ", address->host,
                        ", which leads each host to itself: set its \"address\" to one that other hosts reach");
  }

  const Env& env_;
  const std::vector<Host> hosts_;
  const std::string token_file_;
  const std::string marker_;
  std::string program_;
  std::vector<std::unique_ptr<Child>> servers_;  // of hosts 1, 2, ...
  std::vector<std::string> listening_;           // their addresses
};

// Returns each host once: workers, then summers. Several members may share a host.
std::vector<Host> hosts_of(launcher::Hosts members) {
  std::vector<Host> hosts;
  for (std::vector<Host>* const list : {&members.workers, &members.summers}) {
    for (Host& member : *list) {
      const bool is_known =
          std::ranges::any_of(hosts, [&](const Host& host) { return host.address == member.address; });
      if (!is_known) hosts.push_back(std::move(member));
    }
  }
  return hosts;
}

absl::Status run_pairs(const ProbePairsFlags& flags) {
  const SystemEnv system({"probe", LogLevel::kWarning});
  const Env& env = system.env();
  GLN_ASSIGN_OR_RETURN(launcher::Hosts members, launcher::read_hosts(flags.hosts, 0, 0));
  std::vector<Host> hosts = hosts_of(std::move(members));
  if (hosts.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", flags.hosts, "': expected at least 2 hosts with different \"address\"; it has ", hosts.size()));
  }
  GLN_ASSIGN_OR_RETURN(const std::string token, flags.token_file.empty()
                                                    ? make_token(*env.random)
                                                    : read_or_make_token_file(*env.random, flags.token_file));
  std::optional<MemoryFile> file;
  std::string path = flags.token_file;
  if (path.empty()) {
    GLN_ASSIGN_OR_RETURN(file, MemoryFile::create("gleaner-token", token));
    path = file->path();
  }
  GLN_ASSIGN_OR_RETURN(std::string marker, make_token(*env.random));
  Pairs pairs(env, std::move(hosts), path, std::move(marker));
  GLN_ASSIGN_OR_RETURN(const topology::Probes probes, pairs.measure());
  return print(topology::to_json(probes));
}

}  // namespace

void add_probe_pairs(flags::Command& probe, Context& context) {
  auto flags = std::make_shared<ProbePairsFlags>();
  flags::Command pairs = probe.add_command("pairs", "Measure each two hosts, one pair at a time, and write the probes");
  pairs
      .add_text("--hosts", flags->hosts,
                absl::StrCat("JSON file of hosts as for `", own_command("run"),
                             "`: all workers, then all summers, each host once. A host has this program at the same "
                             "path"))
      .required();
  pairs.add_text("--token-file", flags->token_file,
                 "File with a secret that all hosts can read at this path, for hosts with a file system of their own "
                 "[default: a file in memory, for hosts of this machine]");
  pairs.on_chosen([flags, &context] { context.run = [flags] { return run_pairs(*flags); }; });
}

}  // namespace gleaner::cli
