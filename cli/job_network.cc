#include "cli/job_network.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/flag_error.h"
#include "cli/networks/rank_map_file.h"
#include "cli/self/own_command.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/collective/groups.h"
#include "common/collective/two_level.h"
#include "common/plan/uplinks.h"
#include "common/ranks/annealing.h"
#include "common/strategy/networked_strategy.h"
#include "common/strategy/probed_racks.h"
#include "common/strategy/rack_times.h"
#include "common/topology/spec.h"
#include "coordinator/roster/networked_reduction.h"

namespace gleaner::cli {
namespace {

absl::Status check_flags(const JobFlags& flags, const coordinator::Options& options) {
  if (flags.topology.text.empty()) {
    if (!flags.topology.uplink.empty()) return flag_error("--uplink", "give --topology, too");
    if (!flags.topology.latency.empty()) return flag_error("--latency", "give --topology, too");
    if (!flags.rank_map.empty()) return flag_error("--rank-map", "give --topology, too");
    return absl::OkStatus();
  }
  if (std::holds_alternative<strategy::Summers>(options.reduction.strategy)) {
    return flag_error("--topology", "summers have no ranks to map; give --strategy auto or a schedule, too");
  }
  if (options.is_elastic()) {
    return flag_error("--topology", "the workers of an elastic job change, so they have no fixed hosts; leave it out");
  }
  return absl::OkStatus();
}

absl::StatusOr<topology::Topology> topology_of_job(const JobFlags& flags) {
  TopologyFlags topology = flags.topology;
  // With a file, --bandwidth states the members' bandwidths only, since the file states the speed of each link.
  if (topology::is_spec(topology.text)) topology.bandwidth = flags.bandwidths.each;
  return topology_of(topology);
}

absl::Status read_map(const std::string& text, strategy::JobNetwork& network) {
  if (text.empty() || text == "best") return absl::OkStatus();
  if (text == "identity") {
    network.source = strategy::RankMapSource::kIdentity;
    return absl::OkStatus();
  }
  auto map = read_rank_map(text, network.topology);
  if (!map.ok()) return absl::Status(map.status().code(), absl::StrCat("--rank-map: ", map.status().message()));
  network.source = strategy::RankMapSource::kGiven;
  network.host_of = *std::move(map);
  return absl::OkStatus();
}

// Returns the names of the hosts in each rack.
std::string groups_of(const strategy::JobNetwork& network, uint32_t workers) {
  return absl::StrJoin(strategy::racks_of(network.topology, workers), "; ", [&](std::string* out, const auto& rack) {
    absl::StrAppend(out, absl::StrJoin(rack, " ", [&](std::string* name, uint32_t host) {
                      absl::StrAppend(name, network.topology.hosts()[host].name);
                    }));
  });
}

// The links of the hosts have the bandwidths of members of which no flag states one.
absl::Status set_bandwidths(const topology::Topology& topology, coordinator::Options& options) {
  if (options.bits_per_second > 0) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, plan::fleet_of(topology, options.workers, options.summers));
  if (options.worker_bits_per_second.empty()) options.worker_bits_per_second = fleet.worker_bits_per_second;
  if (options.summer_bits_per_second.empty()) options.summer_bits_per_second = fleet.summer_bits_per_second;
  return absl::OkStatus();
}

// Returns the flag that is wrong if find_rank_maps() has failed: the topology has no candidates, or the search no map.
absl::string_view flag_of_failure(const coordinator::Options& options) {
  const bool has_candidates =
      !is_auto(options.reduction.strategy) || strategy::schedules_for(*options.reduction.network, options.workers).ok();
  return has_candidates ? "--rank-map" : "--topology";
}

std::string describe(std::span<const strategy::MappedSpec> mapped) {
  return absl::StrJoin(mapped, "; ", [](std::string* out, const strategy::MappedSpec& each) {
    absl::StrAppend(out, collective::name_of(each.spec), ": ", strategy::describe(each.spec, each.times));
  });
}

// Logs the groups of racks or two-level if neither a flag nor the network names them.
void log_default_groups(const Env& env, const coordinator::Options& options) {
  const collective::Spec* const schedule = strategy::schedule_of(options.reduction.strategy);
  if (schedule == nullptr || !collective::takes_groups(schedule->algorithm)) return;
  if (!schedule->factors.empty() || !schedule->group_sizes.empty()) return;
  const std::vector<uint32_t> sizes =
      collective::even_sizes(options.workers, collective::default_groups(options.workers));
  env.log->info("groups of consecutive workers; --stages GROUPS,WORKERS or a --topology with racks names others",
                "strategy", schedule->algorithm, "workers", absl::StrJoin(sizes, "+"));
}

}  // namespace

void add_job_network_flags(flags::Command& command, JobFlags& flags) {
  add_topology_flag(command, flags.topology);
  command.add_text("--uplink", flags.topology.uplink, "Bandwidth of each link between switches of --topology SPEC");
  command.add_text("--latency", flags.topology.latency, "Of each link of --topology SPEC [default: 1us]");
  command.add_text("--rank-map", flags.rank_map,
                   absl::StrCat("Which worker has which rank in a schedule: best (as ", own_command("ranks"),
                                " finds it), identity, or a FILE that it wrote [default: best, with --topology]"));
}

absl::Status set_network(const JobFlags& flags, coordinator::Options& options) {
  GLN_RETURN_IF_ERROR(check_flags(flags, options));
  if (flags.topology.text.empty()) return absl::OkStatus();
  strategy::JobNetwork network;
  GLN_ASSIGN_OR_RETURN(network.topology, topology_of_job(flags));
  GLN_RETURN_IF_ERROR(read_map(flags.rank_map, network));
  if (const auto fits = strategy::validate(network, options.workers, options.summers); !fits.ok()) {
    return flag_error(network.source == strategy::RankMapSource::kGiven ? "--rank-map" : "--topology", fits.message());
  }
  GLN_ASSIGN_OR_RETURN(auto fitted, strategy::fit_to_network(options.reduction.strategy, std::move(network),
                                                             options.workers, options.summers));
  GLN_RETURN_IF_ERROR(set_bandwidths(fitted.network.topology, options));
  take(std::move(fitted), options.reduction);
  return absl::OkStatus();
}

absl::Status find_rank_maps(const Env& env, coordinator::Options& options) {
  log_default_groups(env, options);
  if (options.reduction.network == nullptr) return absl::OkStatus();
  const strategy::JobNetwork& network = *options.reduction.network;
  if (network.of_probes) {
    std::string groups = groups_of(network, options.workers);
    if (groups.empty()) groups = "none: all are about as near";
    if (network.unsure_groups)
      groups = absl::StrCat("none, ", strategy::kUnsureGroups, ", or give --stages GROUPS,HOSTS");
    env.log->info("groups of near hosts, by probes", "hosts", groups);
  }
  auto found = strategy::find_rank_maps(options.reduction.strategy, network, options.workers);
  if (!found.ok()) {
    const bool too_many = options.workers > ranks::kMaxSearchHosts;
    return flag_error(flag_of_failure(options),
                      absl::StrCat(found.status().message(), too_many ? "; --rank-map identity needs no search" : ""));
  }
  if (!found->network.mapped.empty()) env.log->info("rank maps", "seconds", describe(found->network.mapped));
  take(*std::move(found), options.reduction);
  return absl::OkStatus();
}

}  // namespace gleaner::cli
