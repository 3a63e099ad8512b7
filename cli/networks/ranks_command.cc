// gleaner ranks: finds which host should have which rank.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/networks/best_rank_map.h"
#include "cli/networks/commands.h"
#include "cli/networks/progress_report.h"
#include "cli/networks/rank_map_report.h"
#include "cli/networks/simulation.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "cli/topology_flags.h"
#include "common/base/env.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/collective/algorithms.h"
#include "common/collective/groups.h"
#include "common/ranks/annealing.h"
#include "common/ranks/hdrm.h"
#include "common/ranks/path_distances.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::cli {
namespace {

using collective::Schedule;
using topology::Topology;

struct RanksFlags {
  TopologyFlags topology;
  std::string algorithm, bytes;
  int64_t ranks = -1;  // -1: as many as hosts
  uint64_t seed = 1;
  uint64_t iterations = 0;  // 0: chosen by the search
  double time_limit = 0;    // seconds; 0: none
  uint32_t groups = 0;      // 0: not given
  std::string output = "table";
};

// Returns the number of groups in which racks and two-level work; 0: the algorithm's default. For racks that is the
// number of different racks in the hosts' places, if they have any.
absl::StatusOr<uint32_t> group_count(const RanksFlags& flags, const Topology& topology, uint32_t ranks) {
  uint32_t count = flags.groups;
  if (count == 0 && flags.algorithm == "racks") {
    absl::flat_hash_set<uint32_t> racks;
    for (const topology::Host& host : topology.hosts()) {
      if (!host.place.empty()) racks.insert(host.place[0]);
    }
    return std::min<uint32_t>(static_cast<uint32_t>(racks.size()), ranks);
  }
  if (count <= ranks) return count;
  return absl::InvalidArgumentError(absl::StrCat("--groups is ", count, ", but there ", ranks == 1 ? "is " : "are ",
                                                 counted(ranks, "rank"), "; a group has one at least"));
}

absl::StatusOr<Schedule> schedule_of(const RanksFlags& flags, const Topology& topology, uint32_t ranks) {
  collective::Spec spec{.algorithm = flags.algorithm == kHdrm ? "halving-doubling" : flags.algorithm};
  if (collective::takes_groups(flags.algorithm)) {
    GLN_ASSIGN_OR_RETURN(const uint32_t groups, group_count(flags, topology, ranks));
    if (groups > 0) spec.group_sizes = collective::even_sizes(ranks, groups);
  }
  auto schedule = collective::make_schedule(spec, ranks);
  if (schedule.ok()) return schedule;
  return absl::InvalidArgumentError(absl::StrCat("--algorithm ", flags.algorithm, ": ", schedule.status().message()));
}

// Returns the number of ranks: that of --ranks, or one for each host.
absl::StatusOr<uint32_t> ranks_of(const RanksFlags& flags, const Topology& topology) {
  if (flags.ranks < 0) return topology.host_count();
  if (flags.ranks > topology.host_count()) {
    return absl::InvalidArgumentError(absl::StrCat("--ranks is ", flags.ranks, ", but the topology has ",
                                                   counted(topology.host_count(), "host"),
                                                   "; a host has one rank at most"));
  }
  return static_cast<uint32_t>(flags.ranks);
}

// Checks, before anything is computed, that HDRM needs no search or that the search takes all hosts. The distances of
// groups need memory for each two hosts.
absl::Status check_size(const RanksFlags& flags, const Topology& topology, uint32_t ranks) {
  if (topology.host_count() <= ranks::kMaxSearchHosts) return absl::OkStatus();
  const auto invalid = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("--topology has ", topology.host_count(), " hosts; ", parts...));
  };
  if (flags.groups > 0) {
    return invalid("--groups takes ", ranks::kMaxSearchHosts, " at most; leave it out, or give a smaller topology");
  }
  if (flags.algorithm == kHdrm) {
    const absl::Status applies = ranks::hdrm(topology, ranks).status();
    if (applies.ok()) return absl::OkStatus();
    return invalid("a search takes ", ranks::kMaxSearchHosts, " at most, and HDRM does not apply: ", applies.message());
  }
  return invalid("a search for a rank map takes ", ranks::kMaxSearchHosts,
                 " at most; give a smaller topology, or on a BiGraph --algorithm hdrm, which needs no search");
}

absl::StatusOr<ranks::Groups> groups_of(const RanksFlags& flags, const topology::Network& network) {
  const uint32_t hosts = network.topology.host_count();
  if (flags.groups == 0) return ranks::Groups();
  if (flags.groups > hosts) {
    return absl::InvalidArgumentError(absl::StrCat("--groups is ", flags.groups, ", but the topology has ",
                                                   counted(hosts, "host"), "; a group has one host at least"));
  }
  ranks::EmbeddingOptions options;
  options.seed = flags.seed;
  GLN_ASSIGN_OR_RETURN(const ranks::Embedding embedding, embed(ranks::path_distances(network), options));
  return ranks::group(embedding, {.groups = flags.groups, .seed = flags.seed});
}

// Names the map that the search found.
std::string origin_of(const ranks::FoundMap& found, const std::optional<ranks::RankMap>& hdrm,
                      const ranks::RankMap& by_groups) {
  const std::string searched = absl::StrCat(found.evaluated, " maps", found.stopped ? ", until the time limit" : "");
  if (found.proof == ranks::Proof::kAll) return absl::StrCat("the best of all ", found.evaluated, " maps");
  const bool is_identity = found.host_of == ranks::identity(static_cast<uint32_t>(found.host_of.size()));
  if (is_identity && found.proof == ranks::Proof::kBound) return "rank i on host i, as no map costs less";
  if (hdrm && found.host_of == *hdrm) return absl::StrCat("HDRM, which annealing did not improve with ", searched);
  if (is_identity) return absl::StrCat("rank i on host i, which annealing did not improve with ", searched);
  if (!by_groups.empty() && found.host_of == by_groups) {
    return absl::StrCat("group by group, which annealing did not improve with ", searched);
  }
  return absl::StrCat("annealing over ", searched);
}

struct Choice {
  ranks::RankMap host_of;
  std::string origin;
};

absl::StatusOr<Choice> search(const RanksFlags& flags, const Schedule& schedule, const topology::Network& network,
                              uint64_t bytes, const ranks::Groups& groups, ProgressReport& progress) {
  ranks::SearchOptions options;
  options.seed = flags.seed;
  options.iterations = flags.iterations;
  options.seconds_of = strategy::simulated_seconds(schedule, network, bytes, kMostTimedMessages);
  const std::optional<ranks::RankMap> hdrm = ranks::hdrm_start(schedule, network.topology);
  if (hdrm) options.starts.push_back(*hdrm);
  ranks::RankMap by_groups = ranks::map_of(groups);
  if (!by_groups.empty()) {
    by_groups.resize(schedule.ranks);
    options.starts.push_back(by_groups);
  }
  options.go_on = [&](double done) {
    if (flags.time_limit > 0 && progress.elapsed() >= absl::Seconds(flags.time_limit)) return false;
    progress.update([&] { return absl::StrCat(static_cast<int>(done * 100), " % of the search is done"); });
    return true;
  };
  GLN_ASSIGN_OR_RETURN(ranks::FoundMap found, find_rank_map(schedule, network, bytes, options));
  if (found.stopped) {
    std::fprintf(stderr,
                 "%s: the time limit ended the search, so the map depends on this machine's speed; "
                 "--iterations N gives the same map everywhere\n",
                 own_command("ranks").c_str());
  }
  std::string origin = origin_of(found, hdrm, by_groups);
  return Choice{std::move(found.host_of), std::move(origin)};
}

absl::StatusOr<Choice> choose(const RanksFlags& flags, const Schedule& schedule, const topology::Network& network,
                              uint64_t bytes, const ranks::Groups& groups, ProgressReport& progress) {
  if (flags.algorithm != kHdrm) return search(flags, schedule, network, bytes, groups, progress);
  const auto map = ranks::hdrm(network.topology, schedule.ranks);
  if (map.ok()) return Choice{*map, "HDRM (EFLOPS, Algorithm 1)"};
  GLN_ASSIGN_OR_RETURN(Choice choice, search(flags, schedule, network, bytes, groups, progress));
  std::fprintf(stderr, "%s: %s; searched for a map by annealing instead\n", own_command("ranks").c_str(),
               std::string(map.status().message()).c_str());
  absl::StrAppend(&choice.origin, ", as HDRM does not apply");
  return choice;
}

absl::StatusOr<std::string> to_text(const RankMapReport& report, const std::string& output) {
  if (output == "json") return to_json(report);
  if (output == "hostfile") return to_hostfile(report);
  if (output == "rankfile") return to_rankfile(report);
  if (output == "explain") return to_explanation(report);
  return to_table(report);
}

absl::Status run_ranks(const RanksFlags& flags) {
  const auto bytes = parse_bytes(flags.bytes);
  if (!bytes.ok()) return absl::InvalidArgumentError(absl::StrCat("--bytes: ", bytes.status().message()));
  GLN_ASSIGN_OR_RETURN(Topology topology, topology_of(flags.topology));
  const SystemEnv system({"gleaner", LogLevel::kError});
  ProgressReport progress(*system.env().clock, own_command("ranks"));
  GLN_ASSIGN_OR_RETURN(const uint32_t ranks, ranks_of(flags, topology));
  GLN_RETURN_IF_ERROR(check_size(flags, topology, ranks));
  GLN_ASSIGN_OR_RETURN(const Schedule schedule, schedule_of(flags, topology, ranks));
  const topology::Network network = topology::make_network(std::move(topology));
  progress.update([] { return "the schedule is made"; });
  GLN_ASSIGN_OR_RETURN(ranks::Groups groups, groups_of(flags, network));
  GLN_ASSIGN_OR_RETURN(Choice choice, choose(flags, schedule, network, *bytes, groups, progress));
  progress.update([] { return "the map is found; counting its flows"; });
  RankMapReport report{network.topology, flags.algorithm,   *bytes, choice.host_of,
                       choice.origin,    std::move(groups), {},     {}};
  GLN_ASSIGN_OR_RETURN(report.map, MapFigures::of(schedule, network, report.host_of, *bytes));
  GLN_ASSIGN_OR_RETURN(report.identity, MapFigures::of(schedule, network, ranks::identity(ranks), *bytes));
  GLN_ASSIGN_OR_RETURN(const std::string text, to_text(report, flags.output));
  return print(text);
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names = {kHdrm};
  for (const absl::string_view name : collective::algorithms()) names.emplace_back(name);
  return names;
}

}  // namespace

void add_ranks(flags::Command& app, Context& context) {
  auto flags = std::make_shared<RanksFlags>();
  flags::Command ranks = app.add_command("ranks", "Find which host should have which rank of an all-reduce");
  add_topology_flag(ranks, flags->topology).required();
  add_link_flags(ranks, flags->topology);
  ranks
      .add_text("--algorithm", flags->algorithm,
                "The all-reduce; hdrm: halving-doubling with the map that has no conflict on a BiGraph")
      .one_of(algorithm_names())
      .required();
  ranks.add_text("--bytes", flags->bytes, "Bytes of the vector: 100MiB, 4096, ...").required();
  ranks.add_number("--ranks", flags->ranks, "Ranks, each on a host that the search chooses [default: one on each host]")
      .between(int64_t{1}, int64_t{collective::kMaxRanks});
  ranks
      .add_number("--groups", flags->groups,
                  "Divide the hosts into so many groups by the latencies between them, and begin the search with "
                  "consecutive ranks for each group")
      .between(uint64_t{1}, uint64_t{ranks::kMaxSearchHosts});
  ranks.add_number("--seed", flags->seed, "Of the search: one seed gives one map").show_default();
  ranks.add_number("--iterations", flags->iterations, "Maps to try [default: by the number of messages]")
      .between(uint64_t{1}, uint64_t{1'000'000'000});
  ranks.add_number("--time-limit", flags->time_limit, "Seconds after which the search ends [default: none]").positive();
  ranks
      .add_text("-o,--output", flags->output,
                "json; table: a line per rank; explain: what the map wins, and which link binds in each step; "
                "rankfile: for mpirun; hostfile: a line per host, which mpirun reorders")
      .one_of({"json", "table", "explain", "hostfile", "rankfile"})
      .show_default();
  ranks.on_chosen([flags, &context] { context.run = [flags] { return run_ranks(*flags); }; });
}

}  // namespace gleaner::cli
