#include "cli/networks/sim_conditions.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

absl::Status wrong(absl::string_view flag, const std::string& text, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(flag, " ", quote(text), ": ", message));
}

std::optional<uint32_t> node_named(absl::string_view name, const topology::Topology& topology) {
  for (uint32_t node = 0; node < topology.node_count(); ++node) {
    if (topology.name(node) == name) return node;
  }
  return std::nullopt;
}

// Returns the nodes of "A:B". Names may have colons, so each colon may be the one between them.
absl::StatusOr<std::pair<uint32_t, uint32_t>> parse_pair(absl::string_view text, const topology::Topology& topology) {
  for (size_t colon = text.find(':'); colon != absl::string_view::npos; colon = text.find(':', colon + 1)) {
    const auto a = node_named(text.substr(0, colon), topology), b = node_named(text.substr(colon + 1), topology);
    if (a && b) return std::pair(*a, *b);
  }
  return absl::InvalidArgumentError(absl::StrCat("expected two hosts or switches of the topology in place of ",
                                                 quote(text), ", as ", topology.name(0), ":",
                                                 topology.name(topology.node_count() - 1)));
}

absl::StatusOr<netsim::Background> parse_background(const std::string& text, const topology::Topology& topology) {
  constexpr char kFlag[] = "--background";
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong(kFlag, text, "expected FROM:TO:RATE, such as host-0:host-1:10Gbit");
  const auto ends = parse_pair(absl::string_view(text).substr(0, colon), topology);
  if (!ends.ok()) return wrong(kFlag, text, absl::StrCat("FROM:TO:RATE: ", ends.status().message()));
  const auto rate = parse_bits_per_second(absl::string_view(text).substr(colon + 1));
  if (!rate.ok()) return wrong(kFlag, text, rate.status().message());
  if (!topology.is_host(ends->first) || !topology.is_host(ends->second) || ends->first == ends->second) {
    return wrong(kFlag, text, "FROM and TO must be two different hosts");
  }
  return netsim::Background{.from = ends->first, .to = ends->second, .bits_per_second = *rate};
}

absl::Status add_failures(const std::string& text, const topology::Topology& topology,
                          std::vector<netsim::Failure>& failures) {
  constexpr char kFlag[] = "--fail";
  const size_t at = text.rfind('@');
  if (at == std::string::npos) return wrong(kFlag, text, "expected A:B@TIME, such as host-0:switch-0@1ms");
  const auto ends = parse_pair(absl::string_view(text).substr(0, at), topology);
  if (!ends.ok()) return wrong(kFlag, text, ends.status().message());
  absl::Duration time;
  if (!absl::ParseDuration(text.substr(at + 1), &time) || time < absl::ZeroDuration() ||
      time == absl::InfiniteDuration()) {
    return wrong(kFlag, text, "TIME is not a duration of 0 or more; write for example 1ms or 20us");
  }
  const size_t before = failures.size();
  for (const topology::Topology::Neighbour& next : topology.neighbours(ends->first)) {
    if (next.node != ends->second) continue;
    failures.push_back({.link = next.channel / 2, .seconds = absl::ToDoubleSeconds(time)});
  }
  if (failures.size() == before) return wrong(kFlag, text, "no link joins these two");
  return absl::OkStatus();
}

}  // namespace

void add_condition_flags(flags::Command& command, ConditionFlags& flags) {
  command.add_texts("--background", flags.background,
                    "FROM:TO:RATE: another user's flow between two hosts, of at most this rate. May be repeated");
  command.add_texts("--fail", flags.failures,
                    "A:B@TIME: the link between two hosts or switches fails, such as host-0:switch-0@1ms. May be "
                    "repeated");
}

absl::StatusOr<netsim::Conditions> conditions_of(const ConditionFlags& flags, const topology::Topology& topology) {
  netsim::Conditions conditions;
  for (const std::string& text : flags.background) {
    GLN_ASSIGN_OR_RETURN(const netsim::Background background, parse_background(text, topology));
    conditions.background.push_back(background);
  }
  for (const std::string& text : flags.failures) {
    GLN_RETURN_IF_ERROR(add_failures(text, topology, conditions.failures));
  }
  return conditions;
}

}  // namespace gleaner::cli
