// gleaner logs JOB: prints the kubectl commands that show its logs.
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/logs_view.h"
#include "cli/commands.h"
#include "common/base/status_macros.h"
#include "common/kube/resource.h"

namespace gleaner::cli {
namespace {

struct Flags {
  ClusterFlags cluster;
  std::string job;
};

absl::Status run_logs(const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags.cluster));
  GLN_ASSIGN_OR_RETURN(const api::TrainingJob job, access->job(flags.job));
  GLN_ASSIGN_OR_RETURN(
      const std::vector<placement::Pod> pods,
      access->list_as(kube::pods(), access->ns(), placement::parse_pod, absl::StrCat(api::kJobLabel, "=", flags.job)));
  return print(logs_text(job, pods));
}

}  // namespace

void add_logs_hint(flags::Command& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  flags::Command command = app.add_command("logs", "Print the kubectl commands that show a TrainingJob's logs");
  add_job_argument(command, flags->job).required();
  add_connection_flags(command, flags->cluster, Namespaces::kOne);
  command.on_chosen([flags, &context] { context.run = [flags] { return run_logs(*flags); }; });
}

}  // namespace gleaner::cli
