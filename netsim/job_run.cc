#include "netsim/job_run.h"

#include <algorithm>

namespace gleaner::netsim {

std::vector<double> equal_partitions(uint64_t bytes, uint32_t element_bytes, uint64_t most_bytes) {
  const uint64_t elements = bytes / element_bytes, most = std::max<uint64_t>(1, most_bytes / element_bytes);
  const uint64_t count = std::max<uint64_t>(1, (elements + most - 1) / most);
  std::vector<double> partitions;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t of_this = elements / count + (i < elements % count ? 1 : 0);
    partitions.push_back(static_cast<double>(of_this * element_bytes));
  }
  return partitions;
}

absl::StatusOr<RunResult> run_job(const collective::Schedule& schedule, const topology::Network& network,
                                  const std::vector<uint32_t>& host_of, const Job& job, const Conditions& conditions,
                                  const Progress& progress) {
  const Partitions partitions{.bytes = equal_partitions(job.bytes, job.element_bytes,
                                                        job.partition_bytes == 0 ? job.bytes : job.partition_bytes),
                              .limits = std::vector<RankLimits>(schedule.ranks, job.limits),
                              .frame_bytes = job.frame_bytes,
                              .partial_width = job.partial_width};
  return run_schedule(schedule, network, host_of, partitions, conditions, progress);
}

}  // namespace gleaner::netsim
