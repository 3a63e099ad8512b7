// Sums memory of the host, and takes norms of it, with the library's kernels, without a session, for programs that
// exchange the bytes themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/bytes.h"

namespace gleaner::runtime {

// Sums `elements` elements of each source into `output`, in the order of the sources, and divides by their number if
// `op` is kAverage (common/kernels/kernels.h). `output` may be one of the sources. Thread safe. The first call reads
// GLEANER_KERNEL. InvalidArgument: there is no source, a pointer is null, the type has no such op, or the output
// overlaps a source in part.
absl::Status sum_on_host(DataType type, ReduceOp op, const std::vector<const std::byte*>& sources, std::byte* output,
                         uint64_t elements);

// Writes the L1 norms of `rows` rows with `columns` elements each to `norms` (common/kernels/kernels.h). Thread safe.
// The first call reads GLEANER_KERNEL. InvalidArgument: a pointer is null though there are rows, the type has no norms,
// or the rows do not fit into memory.
absl::Status l1_norms_on_host(DataType type, const std::byte* values, uint64_t rows, uint64_t columns, float* norms);

}  // namespace gleaner::runtime
