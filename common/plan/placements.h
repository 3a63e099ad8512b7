// load_of() says how much parameter servers carry in a step, by their placement, and so which bandwidth hides a step's
// communication behind its computation: bytes / (computation time). Source: Luo §2.1 and Table 2.1, which assumes
// servers of infinite speed and full overlap. Pure.
//
// Each way, per byte of the gradient, for n workers and k servers:
//
//   placement                          busiest server's link    worker's link
//   CC   centralized, colocated        n - 1                    1
//   CS   sharded over the workers      2(n - 1)/n               the same link
//   NCC  centralized, a machine        n                        1
//   NCS  sharded over k machines       n/k                      1
//
// Table 2.1 adds both directions, so its figures are twice these: 2(n - 1), 4(n - 1)/n, 2n, and 2 for k = n.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace gleaner::plan {

enum class ServerPlacement : uint8_t {
  kCentralColocated,     // CC
  kShardedColocated,     // CS
  kCentralNonColocated,  // NCC
  kShardedNonColocated,  // NCS
};

inline constexpr std::array kServerPlacements = {ServerPlacement::kCentralColocated, ServerPlacement::kShardedColocated,
                                                 ServerPlacement::kCentralNonColocated,
                                                 ServerPlacement::kShardedNonColocated};

// Returns "CC", "CS", "NCC" or "NCS".
absl::string_view name_of(ServerPlacement placement);

// Bytes that the busiest links carry each way, per byte of the gradient.
struct LinkLoad {
  double worker = 0;
  double server = 0;  // of the busiest machine that sums; it may be a worker
};

// Returns the load of n = `workers` workers; `servers`: k, for NCS. No worker moves a byte if it is alone and
// colocated. Requires workers >= 1, and servers >= 1 for NCS.
LinkLoad load_of(ServerPlacement placement, uint32_t workers, uint32_t servers);

// Returns the number of machines that are only servers.
uint32_t extra_machines(ServerPlacement placement, uint32_t servers);

}  // namespace gleaner::plan
