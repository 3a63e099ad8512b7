#include "cli/networks/simulation.h"

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/fleet_flags.h"
#include "cli/networks/best_rank_map.h"
#include "cli/networks/memory.h"
#include "cli/networks/rank_map_file.h"
#include "cli/networks/simulated_plan.h"
#include "cli/networks/stages_flag.h"
#include "cli/self/own_command.h"
#include "common/base/accumulator.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/collective/algorithms.h"
#include "common/collective/messages.h"
#include "common/netsim/host_map.h"
#include "common/netsim/plan_run.h"
#include "common/plan/all_reduce_bound.h"
#include "common/plan/schedule_name.h"
#include "common/ranks/hdrm.h"
#include "common/ranks/rank_map.h"

namespace gleaner::cli {
namespace {

using collective::Schedule;
using topology::Topology;

// Bytes of memory, at most, for an operation of a schedule and its part of a message; for a message of a partition, in
// schedules and in plans; and for a connection.
constexpr double kOperationBytes = 45, kTransitBytes = 30, kConnectionBytes = 400;

absl::Status invalid(const auto&... parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); }

absl::StatusOr<uint32_t> members_of(const SimulationFlags& flags, const Topology& topology) {
  const int64_t hosts = topology.host_count();
  const int64_t summers = std::max<int64_t>(flags.summers, 0);
  if (flags.ranks >= 0 && flags.ranks + summers > hosts) {
    return invalid("--ranks is ", flags.ranks, flags.summers > 0 ? absl::StrCat(" and --summers ", summers) : "",
                   ", but the topology has ", counted(hosts, "host"), "; a host has one rank or summer at most");
  }
  if (flags.ranks < 0 && summers >= hosts) {
    return invalid("--summers is ", summers, ", but the topology has ", counted(hosts, "host"),
                   ", and a worker needs one, too");
  }
  return static_cast<uint32_t>(flags.ranks < 0 ? hosts : flags.ranks + summers);
}

// Gives the members random hosts, the same for a seed on every machine.
std::vector<uint32_t> random_map(uint32_t members, const Topology& topology, uint64_t seed) {
  std::vector<uint32_t> map = ranks::identity(topology.host_count());
  std::mt19937_64 random(seed);
  for (uint32_t i = 0; i < members; ++i) std::swap(map[i], map[i + random() % (map.size() - i)]);
  map.resize(members);
  return map;
}

// Returns the map that --rank-map gives. `best`: finds the map for "best".
absl::StatusOr<std::vector<uint32_t>> map_of(const SimulationFlags& flags, const Topology& topology, uint32_t members,
                                             const std::function<absl::StatusOr<ranks::RankMap>()>& best) {
  constexpr char kRandom[] = "random:";
  if (flags.rank_map.empty() || flags.rank_map == "identity") return ranks::identity(members);
  if (flags.rank_map == "best") return best();
  if (absl::string_view seed = flags.rank_map; absl::ConsumePrefix(&seed, kRandom)) {
    uint64_t number = 0;
    if (absl::SimpleAtoi(seed, &number)) return random_map(members, topology, number);
    return invalid("--rank-map ", quote(flags.rank_map), ": expected random:SEED, where SEED is a whole number");
  }
  absl::StatusOr<std::vector<uint32_t>> map = read_rank_map(flags.rank_map, topology);
  if (!map.ok()) return absl::Status(map.status().code(), absl::StrCat("--rank-map: ", map.status().message()));
  if (map->size() < members) {
    return invalid("--rank-map: the file has hosts for ", counted(map->size(), "rank"), ", but ", members,
                   members == 1 ? " needs one" : " need one", flags.ranks < 0 ? "; --ranks N simulates fewer" : "");
  }
  map->resize(members);
  const absl::Status fits = netsim::check_hosts("rank", *map, members, topology);
  if (!fits.ok()) return invalid("--rank-map: ", fits.message());
  return map;
}

absl::StatusOr<Schedule> schedule_of(const SimulationFlags& flags, uint32_t ranks) {
  collective::Spec spec;
  spec.algorithm = flags.algorithm == kHdrm ? "halving-doubling" : flags.algorithm;
  spec.radix = flags.radix;
  GLN_ASSIGN_OR_RETURN(spec.factors, parse_stages(flags.stages));
  const auto check = [&](uint64_t operations) {
    return check_memory(absl::StrCat("the schedule of ", ranks, " ranks has about ", operations / 2, " messages and"),
                        static_cast<double>(operations) * (kOperationBytes + kTransitBytes / 2), "Give fewer --ranks");
  };
  absl::StatusOr<Schedule> schedule =
      collective::make_schedule(spec, collective::Collective{.ranks = ranks}, {}, check);
  if (schedule.ok()) return schedule;
  return invalid("--algorithm ", spec.algorithm, ": ", schedule.status().message());
}

// Returns OK if the messages of so many partitions fit into memory.
absl::Status check_messages(size_t partitions, uint32_t workers, uint64_t messages, double bytes) {
  return check_memory(absl::StrCat("the run with ", counted(partitions, "partition"), " of ",
                                   counted(workers, "worker"), " has ", messages, " messages and"),
                      bytes, "Give a larger --partition-bytes");
}

TensorOfJob tensor_of(const SimulationFlags& flags) {
  // The parser of the flags checked the type.
  return {.bytes = flags.bytes, .partition_bytes = flags.partition_bytes, .type = *parse_data_type(flags.dtype)};
}

// Returns how a job would cut the vector; without --partition-bytes, does not cut it.
absl::StatusOr<netsim::Partitions> partitions_of(const SimulationFlags& flags, const topology::Network& network,
                                                 const std::vector<uint32_t>& map, const Schedule& schedule,
                                                 double bytes) {
  if (flags.partition_bytes.empty()) return netsim::uncut(bytes);
  GLN_ASSIGN_OR_RETURN(netsim::Partitions partitions, partitions_of_schedule(tensor_of(flags), network, map, schedule));
  const uint64_t of_partition = collective::message_count(schedule);
  const uint64_t messages = of_partition * partitions.bytes.size();
  GLN_RETURN_IF_ERROR(check_messages(
      partitions.bytes.size(), schedule.ranks, messages,
      2 * static_cast<double>(of_partition) * kOperationBytes + static_cast<double>(messages) * kTransitBytes));
  return partitions;
}

absl::StatusOr<Simulation> simulate_schedule(const SimulationFlags& flags, const topology::Network& network,
                                             const netsim::Conditions& conditions, const SimulationProgress& progress) {
  if (flags.summers >= 0) return invalid("--summers needs --algorithm summers");
  const Topology& topology = network.topology;
  GLN_ASSIGN_OR_RETURN(const uint64_t bytes, bytes_of(flags));
  GLN_ASSIGN_OR_RETURN(const uint32_t ranks, members_of(flags, topology));
  GLN_ASSIGN_OR_RETURN(const Schedule schedule, schedule_of(flags, ranks));
  const auto best = [&] { return best_rank_map(schedule, network, bytes, flags.seed, progress.searching); };
  std::vector<uint32_t> map;
  if (flags.algorithm == kHdrm) {
    if (!flags.rank_map.empty()) return invalid("--algorithm hdrm has its own rank map; leave --rank-map out");
    const auto made = ranks::hdrm(topology, ranks);
    if (!made.ok()) return invalid("--algorithm hdrm: ", made.status().message());
    map = *made;
  } else {
    GLN_ASSIGN_OR_RETURN(map, map_of(flags, topology, ranks, best));
  }
  const auto all_bytes = static_cast<double>(bytes);
  GLN_ASSIGN_OR_RETURN(netsim::Partitions partitions, partitions_of(flags, network, map, schedule, all_bytes));
  const DataType type = *parse_data_type(flags.dtype);  // valid: the parser of the flags checked it
  partitions.partial_width = static_cast<uint32_t>(size_of(accumulator_of(type)) / size_of(type));
  partitions.element_bytes = static_cast<double>(size_of(type));
  GLN_ASSIGN_OR_RETURN(netsim::RunResult run,
                       netsim::run_schedule(schedule, network, map, partitions, conditions, progress.simulating));
  return Simulation{.ranks = ranks,
                    .summers = 0,
                    .bytes = bytes,
                    .bound = plan::all_reduce_bound(topology, map, ranks, all_bytes),
                    .run = std::move(run)};
}

absl::StatusOr<Simulation> simulate_summers(const SimulationFlags& flags, const topology::Network& network,
                                            const netsim::Conditions& conditions, const SimulationProgress& progress) {
  if (!flags.stages.empty() || flags.radix != 0) return invalid("--stages and --radix don't fit --algorithm summers");
  const Topology& topology = network.topology;
  GLN_ASSIGN_OR_RETURN(const uint32_t members, members_of(flags, topology));
  const auto summers = static_cast<uint32_t>(std::max<int64_t>(flags.summers, 0));
  const auto no_best = [] { return invalid("--rank-map best needs an all-reduce; summers have no ranks to map"); };
  GLN_ASSIGN_OR_RETURN(const std::vector<uint32_t> map, map_of(flags, topology, members, no_best));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of_summers(tensor_of(flags), topology, map, members - summers));
  const auto bytes = static_cast<double>(plan.tensors.front().bytes());
  const uint64_t messages = uint64_t{2} * plan.partitions.size() * plan.workers;
  GLN_RETURN_IF_ERROR(check_messages(plan.partitions.size(), plan.workers, messages,
                                     static_cast<double>(messages) * kTransitBytes +
                                         static_cast<double>(plan.workers) * members * 2 * kConnectionBytes));
  GLN_ASSIGN_OR_RETURN(netsim::RunResult run, netsim::run_plan(plan, network, map, conditions, progress.simulating));
  return Simulation{.ranks = members - summers,
                    .summers = summers,
                    .bytes = plan.tensors.front().bytes(),
                    .bound = plan::all_reduce_bound(topology, map, members - summers, bytes),
                    .run = std::move(run)};
}

}  // namespace

std::vector<std::string> simulated_algorithms() {
  std::vector<std::string> names;
  for (const absl::string_view name : collective::algorithms()) names.emplace_back(name);
  names.emplace_back(kHdrm);
  names.emplace_back(plan::kSummersStrategy);
  return names;
}

absl::StatusOr<uint64_t> bytes_of(const SimulationFlags& flags) {
  auto bytes = parse_bytes(flags.bytes);
  if (!bytes.ok()) return invalid("--bytes: ", bytes.status().message());
  return bytes;
}

void add_simulation_flags(flags::Command& command, SimulationFlags& flags) {
  command
      .add_text("--algorithm", flags.algorithm,
                absl::StrCat(absl::StrJoin(simulated_algorithms(), ", "),
                             ". hdrm: halving-doubling with the rank map of EFLOPS; summers: push-pull"))
      .required();
  command.add_text("--bytes", flags.bytes, "Bytes of each rank's vector: 256MiB, 4096, ...").required();
  command.add_text("--stages", flags.stages, "Of blueconnect, racks and two-level: 3,2,2");
  command.add_number("--radix", flags.radix, "Of bcube").between(int64_t{2}, int64_t{collective::kMaxRanks});
  command.add_number("--ranks", flags.ranks, "Ranks or workers [default: one on each host that is no summer]")
      .between(int64_t{1}, int64_t{collective::kMaxRanks});
  command
      .add_number("--summers", flags.summers, "Summers, on hosts of their own after those of the workers [default: 0]")
      .between(int64_t{0}, int64_t{collective::kMaxRanks});
  command.add_text("--partition-bytes", flags.partition_bytes,
                   absl::StrCat("The largest partition, up to 4MiB, or plan: as ", own_command("plan"),
                                " cuts the vector [default: plan with summers; otherwise one message for each "
                                "operation of the schedule]"));
  add_data_type_flag(command, flags.dtype, "Data type of the vector; partial sums of fp16 and bf16 travel as fp32")
      .show_default();
  command.add_text("--rank-map", flags.rank_map,
                   absl::StrCat("Which host has which rank: identity, random:SEED, best (as ", own_command("ranks"),
                                " finds it), or a FILE that it wrote [default: identity]"));
  command.add_number("--seed", flags.seed, "Chooses among equally short paths").show_default();
}

absl::StatusOr<Simulation> simulate(const SimulationFlags& flags, const topology::Network& network,
                                    netsim::Conditions conditions, const SimulationProgress& progress) {
  conditions.seed = flags.seed;
  return flags.algorithm == plan::kSummersStrategy ? simulate_summers(flags, network, conditions, progress)
                                                   : simulate_schedule(flags, network, conditions, progress);
}

}  // namespace gleaner::cli
