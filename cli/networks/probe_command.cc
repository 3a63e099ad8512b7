// gleaner probe: measures the network between hosts.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "agent/probe/measure.h"
#include "cli/networks/probe_commands.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "common/base/end_signals.h"
#include "common/base/env.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"

namespace gleaner::cli {
namespace {

constexpr int kAttempts = 5;  // of a measurement; a peer may still be busy with the last one, which took too long
constexpr absl::Duration kMostTime = absl::Seconds(5);      // of an attempt
constexpr absl::Duration kPause = absl::Milliseconds(300);  // after a failed attempt

struct ServeFlags {
  std::string listen, token_file, marker;
};

struct PeersFlags {
  std::string token_file, marker;
  std::vector<std::string> peers;
};

// Returns whether the reader of standard output has closed it.
bool output_is_closed() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

absl::Status run_serve(const ServeFlags& flags) {
  const SystemEnv system({"probe", LogLevel::kWarning});
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start(own_command("probe serve")));
  GLN_ASSIGN_OR_RETURN(const Address listen, Address::parse(flags.listen));
  GLN_ASSIGN_OR_RETURN(std::string secret, read_secret_file(flags.token_file));
  GLN_ASSIGN_OR_RETURN(const auto server, probe::MeasureServer::start(system.env(), listen, std::move(secret),
                                                                      absl::ZeroDuration(), kMostTime));
  GLN_RETURN_IF_ERROR(print_marker(flags.marker));
  GLN_RETURN_IF_ERROR(print(absl::StrCat(server->address().to_string(), "\n")));
  while (signals.wait(absl::Seconds(1)) == 0 && !output_is_closed()) {
  }
  return absl::OkStatus();
}

absl::StatusOr<ProbedPath> probe_peer(const Env& env, const EndSignals& signals, const Address& peer,
                                      const std::string& secret) {
  absl::Status failed;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto measured = probe::measure_path(env, peer, secret, {.most = kMostTime});
    if (measured.ok()) {
      return ProbedPath{absl::ToDoubleMicroseconds(measured->round_trip) / 2, measured->bits_per_second,
                        absl::ToDoubleMicroseconds(measured->overhead())};
    }
    failed = measured.status();
    if (absl::IsPermissionDenied(failed) || absl::IsFailedPrecondition(failed) || signals.wait(kPause) != 0) break;
  }
  return absl::Status(failed.code(), absl::StrCat(peer.to_string(), ": ", failed.message()));
}

absl::Status run_peers(const PeersFlags& flags) {
  const SystemEnv system({"probe", LogLevel::kWarning});
  GLN_ASSIGN_OR_RETURN(const EndSignals signals, EndSignals::start(own_command("probe peers"), absl::Seconds(2)));
  GLN_ASSIGN_OR_RETURN(const std::string secret, read_secret_file(flags.token_file));
  GLN_RETURN_IF_ERROR(print_marker(flags.marker));
  for (const std::string& text : flags.peers) {
    GLN_ASSIGN_OR_RETURN(const Address peer, Address::parse(text));
    GLN_ASSIGN_OR_RETURN(const ProbedPath path, probe_peer(system.env(), signals, peer, secret));
    GLN_RETURN_IF_ERROR(print(to_line(text, path)));
  }
  return absl::OkStatus();
}

}  // namespace

std::string to_line(const std::string& peer, const ProbedPath& path) {
  const nlohmann::ordered_json json = {{"peer", peer},
                                       {"latency_us", path.latency_us},
                                       {"bandwidth", path.bits_per_second},
                                       {"overhead_us", path.overhead_us}};
  return json.dump() + "\n";
}

absl::StatusOr<ProbedPath> parse_line(absl::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  const auto value = [&](const char* field) {
    return json.contains(field) && json[field].is_number() ? json[field].get<double>() : -1;
  };
  if (!json.is_object() || value("latency_us") <= 0 || value("bandwidth") <= 0 || value("overhead_us") < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a line of `", own_command("probe peers"), "`, not '", line, "'"));
  }
  return ProbedPath{value("latency_us"), value("bandwidth"), value("overhead_us")};
}

void add_marker_flag(flags::Command& command, std::string& marker) {
  command.add_text("--marker", marker,
                   "Write this line first, so that a reader can drop a greeting that a shell writes before it");
}

absl::Status print_marker(const std::string& marker) {
  return marker.empty() ? absl::OkStatus() : print(absl::StrCat(marker, "\n"));
}

void add_probe_serve(flags::Command& probe, Context& context) {
  auto flags = std::make_shared<ServeFlags>();
  flags::Command serve = probe.add_command("serve",
                                           "Answer probes of this host until a signal, or until the reader of "
                                           "standard output has gone");
  serve.add_text("--listen", flags->listen, "IP:PORT; port 0: any free port, which standard output gets")
      .address()
      .required();
  serve
      .add_text("--token-file", flags->token_file,
                absl::StrCat("File with the secret that `", own_command("probe peers"), "` shows"))
      .required();
  add_marker_flag(serve, flags->marker);
  serve.on_chosen([flags, &context] { context.run = [flags] { return run_serve(*flags); }; });
}

void add_probe_peers(flags::Command& probe, Context& context) {
  auto flags = std::make_shared<PeersFlags>();
  flags::Command peers =
      probe.add_command("peers", "Measure the paths from this host to others that serve, and write a line for each");
  peers
      .add_text("--token-file", flags->token_file,
                absl::StrCat("File with the secret of `", own_command("probe serve"), "`"))
      .required();
  peers.add_texts("PEERS", flags->peers, "IP:PORT of each").required();
  add_marker_flag(peers, flags->marker);
  peers.on_chosen([flags, &context] { context.run = [flags] { return run_peers(*flags); }; });
}

void add_probe(flags::Command& app, Context& context) {
  flags::Command probe = app.add_command("probe", "Measure the network between hosts, for --topology");
  probe.require_command();
  add_probe_pairs(probe, context);
  add_probe_serve(probe, context);
  add_probe_peers(probe, context);
}

}  // namespace gleaner::cli
