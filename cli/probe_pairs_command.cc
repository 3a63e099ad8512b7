// gleaner probe pairs: measures each two hosts of a file, one pair at a time, and writes the probes.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/launcher/hosts.h"
#include "cli/launcher/process.h"
#include "cli/memory_file.h"
#include "cli/print.h"
#include "cli/probe_commands.h"
#include "cli/progress_report.h"
#include "cli/token_file.h"
#include "common/base/address.h"
#include "common/base/descriptor.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/topology/latency.h"
#include "common/topology/probes.h"

namespace gleaner::cli {
namespace {

using launcher::Host;
using launcher::Process;

constexpr absl::Duration kStartTimeout = absl::Seconds(30);  // of a command on a host, which SSH may have to reach
constexpr absl::Duration kPairTimeout = absl::Seconds(40);

struct ProbePairsFlags {
  std::string hosts, token_file;
};

// A command on a host, whose standard output is read line by line. The destructor ends it.
class Child {
 public:
  static absl::StatusOr<std::unique_ptr<Child>> start(const Host& host, const std::vector<std::string>& arguments) {
    auto process = Process::spawn({launcher::on_host(host, {}, arguments), {}});
    if (!process.ok())
      return absl::Status(process.status().code(), absl::StrCat(host.address, ": ", process.status().message()));
    return std::unique_ptr<Child>(new Child(host.address, *std::move(process)));
  }
  ~Child() { process_.reap(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns the next line, without its end. Unavailable: the command has ended, or has written no line in time.
  absl::StatusOr<std::string> next_line(const Clock& clock, absl::Duration timeout) {
    const absl::Duration deadline = clock.since_start() + timeout;
    for (;;) {
      if (const size_t end = text_.find('\n'); end != std::string::npos) {
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      pollfd output{output_.get(), POLLIN, 0};
      const auto left = absl::ToInt64Milliseconds(deadline - clock.since_start());
      if (left <= 0 || ::poll(&output, 1, static_cast<int>(left)) <= 0) {
        if (left > 0) continue;
        return absl::UnavailableError(
            absl::StrCat(address_, ": no measurement within ", absl::FormatDuration(timeout)));
      }
      std::array<char, 4096> part;
      const ssize_t got = ::read(output_.get(), part.data(), part.size());
      if (got > 0) text_.append(part.data(), static_cast<size_t>(got));
      if (got == 0) return absl::UnavailableError(absl::StrCat(address_, ": ", complaint()));
    }
  }

 private:
  Child(std::string address, Process process)
      : address_(std::move(address)), process_(process), output_(process.output()), errors_(process.errors()) {}

  // Returns what the command has written to standard error.
  std::string complaint() const {
    std::array<char, 4096> text;
    pollfd errors{errors_.get(), POLLIN, 0};
    ::poll(&errors, 1, 1000);
    const ssize_t got = ::read(errors_.get(), text.data(), text.size());
    if (got <= 0) return "the command has ended without a word";
    return std::string(absl::StripSuffix({text.data(), static_cast<size_t>(got)}, "\n"));
  }

  const std::string address_;
  Process process_;
  const Descriptor output_, errors_;
  std::string text_;  // without an end of line so far
};

// Measures pairs of hosts.
class Pairs {
 public:
  Pairs(const Env& env, std::vector<Host> hosts, std::string token_file)
      : env_(env), hosts_(std::move(hosts)), token_file_(std::move(token_file)) {
    std::error_code unknown;
    program_ = std::filesystem::read_symlink("/proc/self/exe", unknown);
    if (unknown) program_ = "gleaner";
  }

  absl::StatusOr<topology::Probes> measure() {
    GLN_RETURN_IF_ERROR(start_servers());
    const size_t count = hosts_.size();
    topology::Probes probes;
    for (const Host& host : hosts_) probes.names.push_back(host.address);
    probes.latency_seconds.resize(count * count);
    probes.bits_per_second.resize(count * count);
    ProgressReport progress(*env_.clock, "gleaner probe pairs");
    size_t done = 0;
    for (size_t from = 0; from + 1 < count; ++from) {
      std::vector<std::string> arguments = {program_, "probe", "peers", "--token-file", token_file_};
      arguments.insert(arguments.end(), listening_.begin() + static_cast<std::ptrdiff_t>(from), listening_.end());
      GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Child> client, Child::start(hosts_[from], arguments));
      for (size_t to = from + 1; to < count; ++to) {
        GLN_ASSIGN_OR_RETURN(const std::string line, client->next_line(*env_.clock, kPairTimeout));
        GLN_ASSIGN_OR_RETURN(const ProbedPath path, parse_line(line));
        for (const size_t entry : {from * count + to, to * count + from}) {
          probes.latency_seconds[entry] = topology::seconds_of_microseconds(path.latency_us);
          probes.bits_per_second[entry] = path.bits_per_second;
        }
        ++done;
        progress.update([&] { return absl::StrCat(done, " of ", count * (count - 1) / 2, " pairs are measured"); });
      }
    }
    return probes;
  }

 private:
  // Starts a server on each host but the first, which no pair needs.
  absl::Status start_servers() {
    for (size_t host = 1; host < hosts_.size(); ++host) {
      const std::string listen = Address{hosts_[host].address, 0}.to_string();
      GLN_ASSIGN_OR_RETURN(servers_.emplace_back(), Child::start(hosts_[host], {program_, "probe", "serve", "--listen",
                                                                                listen, "--token-file", token_file_}));
    }
    for (const auto& server : servers_) {
      GLN_ASSIGN_OR_RETURN(listening_.emplace_back(), server->next_line(*env_.clock, kStartTimeout));
    }
    return absl::OkStatus();
  }

  const Env& env_;
  const std::vector<Host> hosts_;
  const std::string token_file_;
  std::string program_;
  std::vector<std::unique_ptr<Child>> servers_;  // of hosts 1, 2, ...
  std::vector<std::string> listening_;           // their addresses
};

absl::Status run_pairs(const ProbePairsFlags& flags) {
  const SystemEnv system({"probe", LogLevel::kWarning});
  const Env& env = system.env();
  GLN_ASSIGN_OR_RETURN(launcher::Hosts hosts, launcher::read_hosts(flags.hosts, 2, 0));
  GLN_ASSIGN_OR_RETURN(const std::string token, flags.token_file.empty()
                                                    ? make_token(*env.random)
                                                    : read_or_make_token_file(*env.random, flags.token_file));
  std::optional<MemoryFile> file;
  std::string path = flags.token_file;
  if (path.empty()) {
    GLN_ASSIGN_OR_RETURN(file, MemoryFile::create("gleaner-token", token));
    path = file->path();
  }
  for (Host& summer : hosts.summers) hosts.workers.push_back(std::move(summer));
  Pairs pairs(env, std::move(hosts.workers), path);
  GLN_ASSIGN_OR_RETURN(const topology::Probes probes, pairs.measure());
  return print(topology::to_json(probes));
}

}  // namespace

void add_probe_pairs(flags::Command& probe, Context& context) {
  auto flags = std::make_shared<ProbePairsFlags>();
  flags::Command pairs = probe.add_command("pairs", "Measure each two hosts, one pair at a time, and write the probes");
  pairs
      .add_text(
          "--hosts", flags->hosts,
          "JSON file of hosts as for `gleaner run`: all workers, then all summers. A host has this program at the "
          "same path")
      .required();
  pairs.add_text("--token-file", flags->token_file,
                 "File with a secret that all hosts can read at this path, for hosts with a file system of their own "
                 "[default: a file in memory, for hosts of this machine]");
  pairs.on_chosen([flags, &context] { context.run = [flags] { return run_pairs(*flags); }; });
}

}  // namespace gleaner::cli
