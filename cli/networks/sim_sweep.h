// `gleaner sim --sweep`: one simulation for each size of one or more families of topologies, and one or more
// algorithms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/networks/simulation.h"
#include "cli/topology_flags.h"

namespace gleaner::cli {

struct SweepFlags {
  std::string sizes;  // "64,128,256"; empty: no sweep
  std::string plot;   // FILE for the SVG; empty: none
};

struct SweepLine {
  std::string spec;      // as in --topology: "racks:Rx4"
  std::string topology;  // names the line: the family ("racks"), or `spec` beside others of its family
  std::string algorithm;
  std::vector<Simulation> points;  // by size
};

struct Sweep {
  std::string bytes;
  std::vector<uint32_t> sizes;
  std::vector<SweepLine> lines;
};

// Returns the SPEC of the topology for this number of ranks, and of the family of `spec`:
//   star:N       N hosts
//   racks:RxH    racks of H hosts, as in `spec`; the size is a multiple of H
//   fat-tree:K   the least K with at least as many hosts; the ranks are on the first of them
//   bigraph:MxN  as many hosts as ranks, with the largest M <= N/2 (EFLOPS §IV-B), N even
// InvalidArgument: the family has no such size.
absl::StatusOr<std::string> spec_of_size(const std::string& spec, uint32_t size);

// `topology.text` and `simulation.algorithm` may be lists with commas. A family without a map for hdrm has no line for
// it, and hdrm keeps its own map if `simulation.rank_map` gives one for the other algorithms. `starting` is called with
// the name of each simulation. Errors are InvalidArgument and name the flag, or those of simulate().
absl::StatusOr<Sweep> run_sweep(const SweepFlags& flags, const TopologyFlags& topology,
                                const SimulationFlags& simulation,
                                const std::function<SimulationProgress(const std::string& name)>& starting);

std::string to_json(const Sweep& sweep);
std::string to_table(const Sweep& sweep);
std::string to_svg(const Sweep& sweep);

}  // namespace gleaner::cli
