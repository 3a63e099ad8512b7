// The bound of a push_pull in a network whose links are no tree, where the shares of the owners alone do not tell the
// bytes of a link. Routes are fixed (link_loads.h), so member m adds a_cm·x_m seconds to the load of channel c when it
// owns the fraction x_m, and the bound is a linear program:
//
//   minimize T   subject to   Σ_m a_cm·x_m <= T for each channel c,   Σ_m x_m = 1,   x >= 0
//
// Its variables here are y_m = u_m(T) - x_m >= 0, for the most that member m's own links let it own in time T:
// u_m(T) = α_m·T - β_m, as in model.h. Then Σ x = 1 gives T = T_0 + Σ y / Σ α, with the bound T_0 of the own links, and
// y = 0 is the solution in a network without other limits. Rows are added only for channels that a solution overloads.
// The prices of the rows prove the result.
//
// The program is solved by linear_program.h. Of the libraries in Debian 12, Clp needs LAPACK, whose library may start
// threads in every process that loads it, and the license of GLPK does not fit. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/link_loads.h"
#include "common/plan/model.h"

namespace gleaner::plan {

struct RoutedBound {
  double seconds_per_byte = 0;
  std::vector<double> shares;    // by member; the fractions add up to 1
  std::vector<uint32_t> limits;  // indexes of the links that are busy all the time with these shares
};

// Requires loads without a tree, of two workers or more, and the bandwidths of their members. Of the shares that reach
// the bound, the result has some that are nearly as even as possible: the most by which a share exceeds both that at
// one switch and the mean is small. Internal: rounding errors were too large.
absl::StatusOr<RoutedBound> bound_on_routes(const LinkLoads& loads, const Fleet& fleet);

}  // namespace gleaner::plan
