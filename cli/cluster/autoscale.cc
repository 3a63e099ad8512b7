#include "cli/cluster/actions.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/print.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "operator/autoscale/replay.h"

namespace gleaner::cli {

absl::Status run_autoscale(const AutoscaleFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const std::string text, read_file(flags.file, "the recorded series"));
  const nlohmann::json recording = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (recording.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(flags.file, " is not JSON"));
  GLN_ASSIGN_OR_RETURN(const auto decisions, autoscale::replay(recording));
  return print(autoscale::to_text(decisions, flags.every));
}

}  // namespace gleaner::cli
