#include "common/plan/placements.h"

namespace gleaner::plan {

absl::string_view name_of(ServerPlacement placement) {
  switch (placement) {
    case ServerPlacement::kCentralColocated:
      return "CC";
    case ServerPlacement::kShardedColocated:
      return "CS";
    case ServerPlacement::kCentralNonColocated:
      return "NCC";
    case ServerPlacement::kShardedNonColocated:
      return "NCS";
  }
  return "";
}

LinkLoad load_of(ServerPlacement placement, uint32_t workers, uint32_t servers) {
  const double n = workers;
  switch (placement) {
    case ServerPlacement::kCentralColocated:
      return {workers > 1 ? 1.0 : 0.0, n - 1};
    case ServerPlacement::kShardedColocated:
      return {2 * (n - 1) / n, 2 * (n - 1) / n};
    case ServerPlacement::kCentralNonColocated:
      return {1, n};
    case ServerPlacement::kShardedNonColocated:
      return {1, n / servers};
  }
  return {};
}

uint32_t extra_machines(ServerPlacement placement, uint32_t servers) {
  if (placement == ServerPlacement::kCentralNonColocated) return 1;
  return placement == ServerPlacement::kShardedNonColocated ? servers : 0;
}

}  // namespace gleaner::plan
