#include "cli/collective_bound.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/collectives.h"

namespace gleaner::cli {
namespace {

absl::StatusOr<double> gathered_bytes(const CollectiveFlags& flags, double reduced) {
  if (flags.gather_bytes.empty()) return reduced;
  const auto bytes = parse_bytes(flags.gather_bytes);
  if (!bytes.ok()) return absl::InvalidArgumentError(absl::StrCat("--gather-bytes: ", bytes.status().message()));
  return static_cast<double>(*bytes);
}

absl::StatusOr<plan::CollectiveBound> bound_of(const CollectiveFlags& flags, const plan::Fleet& fleet, double bytes) {
  if (flags.replicas != 0 && flags.name != "hsdp") {
    return absl::InvalidArgumentError(absl::StrCat("--replicas: ", flags.name, " has no replicas; only hsdp has"));
  }
  if (!flags.gather_bytes.empty() && flags.name != "fsdp") {
    return absl::InvalidArgumentError(
        absl::StrCat("--gather-bytes: ", flags.name, " is one operation; only fsdp gathers beside it"));
  }
  if (flags.name == "hsdp") {
    if (flags.replicas == 0) return absl::InvalidArgumentError("hsdp needs --replicas R, a divisor of --workers");
    auto bound = plan::hybrid_sharding_bound(fleet, bytes, static_cast<uint32_t>(flags.replicas));
    if (bound.ok()) return bound;
    return absl::InvalidArgumentError(absl::StrCat("--replicas: ", bound.status().message()));
  }
  if (flags.name == "fsdp") {
    GLN_ASSIGN_OR_RETURN(const double gathered, gathered_bytes(flags, bytes));
    return plan::scatter_and_gather_bound(fleet, bytes, gathered);
  }
  return plan::scatter_or_gather_bound(fleet, bytes);
}

std::string summers_line(const plan::Fleet& fleet, const plan::CollectiveBound& bound) {
  if (!bound.summers_can_help) return "Summers     buy nothing: the workers' own links bind, however many there are\n";
  if (fleet.k() == 0) return "Summers     would make it shorter; there are none\n";
  return absl::StrFormat("Without     CPU summers the bound is %s, %.2f times as long\n",
                         format_seconds(bound.without_summers_seconds), bound.without_summers_seconds / bound.seconds);
}

}  // namespace

absl::StatusOr<std::string> collective_bound(const CollectiveFlags& flags, const plan::Fleet& fleet, double bytes,
                                             const std::string& output) {
  GLN_RETURN_IF_ERROR(plan::validate(fleet));
  GLN_ASSIGN_OR_RETURN(const plan::CollectiveBound bound, bound_of(flags, fleet, bytes));
  if (output == "json") {
    return nlohmann::ordered_json{{"collective", flags.name},
                                  {"workers", fleet.n()},
                                  {"summers", fleet.k()},
                                  {"bytes", static_cast<uint64_t>(bytes)},
                                  {"bound_seconds", bound.seconds},
                                  {"without_summers_seconds", bound.without_summers_seconds},
                                  {"summers_can_help", bound.summers_can_help}}
               .dump(2) +
           "\n";
  }
  return absl::StrFormat("%s of %s, %s, %s\n\nBound       %s\n%s", flags.name, format_bytes(bytes),
                         counted(fleet.n(), "worker"), counted(fleet.k(), "summer"), format_seconds(bound.seconds),
                         summers_line(fleet, bound));
}

}  // namespace gleaner::cli
