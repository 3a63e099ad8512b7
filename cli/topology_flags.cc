#include "cli/topology_flags.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/flag_error.h"
#include "common/base/file.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/strategy/places.h"
#include "common/topology/json.h"
#include "common/topology/latency.h"
#include "common/topology/spec.h"

namespace gleaner::cli {
namespace {

using topology::LinkSpeed;
using topology::Topology;

// Sets `target` if the flag was given.
absl::Status set_bandwidth(absl::string_view flag, const std::string& text, double& target) {
  if (text.empty()) return absl::OkStatus();
  const auto parsed = parse_bits_per_second(text);
  if (!parsed.ok()) return flag_error(flag, parsed.status().message());
  target = *parsed;
  return absl::OkStatus();
}

// Returns the microseconds of a text such as "1.5us". absl::ParseDuration() would round to a quarter of a nanosecond.
std::optional<double> parse_microseconds(absl::string_view text) {
  if (text == "0") return 0;
  const size_t end = text.find_first_not_of("0123456789.");
  double number = 0;
  if (end == 0 || end == absl::string_view::npos || !absl::SimpleAtod(text.substr(0, end), &number)) {
    return std::nullopt;
  }
  const absl::string_view unit = text.substr(end);
  if (unit == "ns") return number / 1e3;
  if (unit == "us") return number;
  if (unit == "ms") return number * 1e3;
  if (unit == "s") return number * 1e6;
  return std::nullopt;
}

absl::Status set_duration(absl::string_view flag, const std::string& text, double& target) {
  if (text.empty()) return absl::OkStatus();
  const std::optional<double> microseconds = parse_microseconds(text);
  if (!microseconds || !std::isfinite(*microseconds)) {
    return flag_error(
        flag, absl::StrCat(quote(text), " is not a duration of 0 or more; write for example 1us, 500ns or 0.5ms"));
  }
  target = topology::seconds_of_microseconds(*microseconds);
  return absl::OkStatus();
}

absl::StatusOr<LinkSpeed> speed_of(const TopologyFlags& flags) {
  LinkSpeed speed;
  GLN_RETURN_IF_ERROR(set_bandwidth("--bandwidth", flags.bandwidth, speed.bits_per_second));
  GLN_RETURN_IF_ERROR(set_bandwidth("--uplink", flags.uplink, speed.uplink_bits_per_second));
  GLN_RETURN_IF_ERROR(set_duration("--latency", flags.latency, speed.latency_seconds));
  GLN_RETURN_IF_ERROR(set_duration("--overhead", flags.overhead, speed.overhead_seconds));
  return speed;
}

absl::StatusOr<Topology> generate(const TopologyFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const LinkSpeed speed, speed_of(flags));
  auto made = topology::topology_of_spec(flags.text, speed);
  if (!made.ok()) return flag_error(flags.name, made.status().message());
  const auto joins_switches = [&](const topology::Link& link) {
    return !made->is_host(link.a) && !made->is_host(link.b);
  };
  if (!flags.uplink.empty() && std::none_of(made->links().begin(), made->links().end(), joins_switches)) {
    return flag_error("--uplink", absl::StrCat(flags.text, " has no link between switches; leave the flag out"));
  }
  return made;
}

absl::StatusOr<Topology> read(const TopologyFlags& flags) {
  for (const auto& [flag, text] : {std::pair<absl::string_view, const std::string&>{"--bandwidth", flags.bandwidth},
                                   {"--uplink", flags.uplink},
                                   {"--latency", flags.latency},
                                   {"--overhead", flags.overhead}}) {
    if (text.empty()) continue;
    return flag_error(flag, absl::StrCat("a file states the speed of links and hosts, so leave the flag out, or give ",
                                         flags.name, " as ", topology::kSpecs));
  }
  const auto content = read_file(flags.text, "the topology");
  if (absl::IsNotFound(content.status())) {
    return absl::NotFoundError(
        absl::StrCat(flags.name, ": ", content.status().message(), "; give the path of a file, ", topology::kSpecs));
  }
  if (!content.ok())
    return absl::Status(content.status().code(), absl::StrCat(flags.name, ": ", content.status().message()));
  auto parsed = topology::parse_topology(*content);
  if (!parsed.ok()) return flag_error(flags.name, absl::StrCat("'", flags.text, "': ", parsed.status().message()));
  return parsed;
}

}  // namespace

std::string help_of_topology() { return absl::StrCat("SPEC or FILE: ", topology::kSpecs, ", or a JSON file"); }

flags::Flag add_topology_flag(flags::Command& command, TopologyFlags& flags) {
  return command.add_text("--topology", flags.text, help_of_topology());
}

void add_link_flags(flags::Command& command, TopologyFlags& flags) {
  command.add_text("--bandwidth", flags.bandwidth, "Of each host's link in a SPEC, each way [default: 100Gbit]");
  command.add_text("--uplink", flags.uplink,
                   "Of each link between switches in a SPEC, each way [default: as --bandwidth; of racks: that of all "
                   "hosts of the rack]");
  command.add_text("--latency", flags.latency, "Of each link in a SPEC: 1us, 500ns, ... [default: 1us]");
  command.add_text("--overhead", flags.overhead,
                   "Time of each host's processor in a SPEC to send a message, and to receive one [default: 0]");
}

void add_placement_flag(flags::Command& command, TopologyFlags& flags) {
  command
      .add_text("--placement", flags.placement,
                "Which hosts are workers and summers: balanced: each rack has as many workers, and summers are where "
                "most hosts are left; in-order: the first hosts are workers, the next ones summers [default: balanced "
                "for a SPEC, in-order for a FILE]")
      .one_of({"balanced", "in-order"});
}

absl::StatusOr<Topology> placed(const TopologyFlags& flags, const Topology& topology, uint32_t workers,
                                uint32_t summers) {
  const bool balances = flags.placement.empty() ? topology::is_spec(flags.text) : flags.placement == "balanced";
  if (!balances) return topology;
  auto placed = strategy::balanced(topology, workers, summers);
  if (placed.ok()) return placed;
  return flag_error(flags.name, placed.status().message());
}

absl::StatusOr<Topology> topology_of(const TopologyFlags& flags) {
  if (flags.text.empty()) {
    return flag_error(flags.name, absl::StrCat("give ", topology::kSpecs, ", or the path of a JSON file"));
  }
  return topology::is_spec(flags.text) ? generate(flags) : read(flags);
}

}  // namespace gleaner::cli
