// gleaner autoscale FILE: prints the decisions that the operator's autoscaler would have made for recorded series.
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/commands.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "operator/autoscale/replay.h"

namespace gleaner::cli {
namespace {

struct Flags {
  std::string file;
  bool every = false;
};

absl::Status run_autoscale(const Flags& flags) {
  GLN_ASSIGN_OR_RETURN(const std::string text, read_file(flags.file, "the recorded series"));
  const nlohmann::json recording = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (recording.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(flags.file, " is not JSON"));
  GLN_ASSIGN_OR_RETURN(const auto decisions, autoscale::replay(recording));
  return print(autoscale::to_text(decisions, flags.every));
}

}  // namespace

void add_autoscale(flags::Command& app, Context& context) {
  auto flags = std::make_shared<Flags>();
  flags::Command command = app.add_command("autoscale", "Print the autoscaler's decisions for recorded series");
  command.add_text("FILE", flags->file, "Recorded series as JSON: docs/autoscaler.md has the format").required();
  command.add_switch("--every", flags->every, "Print every round, not only those with a change");
  command.on_chosen([flags, &context] { context.run = [flags] { return run_autoscale(*flags); }; });
}

}  // namespace gleaner::cli
