// gleaner top: what machines have to spare, and how well jobs do.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/machines.h"
#include "cli/cluster/top_view.h"
#include "cli/commands.h"
#include "common/base/status_macros.h"
#include "common/kube/resource.h"

namespace gleaner::cli {
namespace {

absl::Status run_top(const ClusterFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags));
  GLN_ASSIGN_OR_RETURN(const std::vector<types::TrainingJob> jobs,
                       access->list_as(kube::training_jobs(), "", types::parse_training_job));
  GLN_ASSIGN_OR_RETURN(const ReadMachines machines, read_machines(*access));
  if (flags.output == "json") {
    return print(absl::StrCat(top_json(machines.fleet.machines(), jobs, access->now()).dump(2), "\n"));
  }
  return print(top_text(machines.fleet.machines(), jobs, access->now()));
}

}  // namespace

void add_top(CLI::App& app, Context& context) {
  auto flags = std::make_shared<ClusterFlags>();
  CLI::App* command = app.add_subcommand("top", "What a cluster's machines have to spare, and how well its jobs do");
  add_cluster_flags(*command, *flags, Namespaces::kNone);
  command->callback([flags, &context] {
    context.command = "top";
    context.run = [flags] { return run_top(*flags); };
  });
}

}  // namespace gleaner::cli
