#include "cli/networks/probed_tree.h"

#include <cstdio>
#include <string>
#include <utility>

#include "cli/self/own_command.h"
#include "common/base/status_macros.h"
#include "common/strategy/probed_racks.h"

namespace gleaner::cli {

absl::StatusOr<topology::Topology> probed_tree(const topology::Topology& probes, uint32_t workers,
                                               absl::string_view command) {
  GLN_ASSIGN_OR_RETURN(strategy::ProbedTree tree, strategy::tree_of_probes(probes, workers));
  if (tree.unsure) {
    std::fprintf(stderr, "%s: groups of near hosts: %s\n", own_command(command).c_str(),
                 std::string(strategy::kUnsureGroups).c_str());
  }
  return std::move(tree.topology);
}

}  // namespace gleaner::cli
