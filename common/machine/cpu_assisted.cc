#include "common/machine/cpu_assisted.h"

#include <algorithm>

namespace gleaner::machine {

SwitchTraffic switch_traffic(uint32_t gpus_of_switch, double brute_force_share) {
  const double n = gpus_of_switch, x = brute_force_share, y = 1 - x;
  return {.cpu_link = n * x + y, .gpu_link = (2 * n - 1) / n * y + x};
}

double completion_seconds(const SwitchLinks& links, double bytes, double brute_force_share) {
  const SwitchTraffic traffic = switch_traffic(links.gpus, brute_force_share);
  return 8 * bytes *
         std::max(traffic.gpu_link / links.gpu_bits_per_second, traffic.cpu_link / links.cpu_bits_per_second);
}

double best_brute_force_share(const SwitchLinks& links) {
  if (links.gpus < 2) return 0;  // both shares are the same copy
  // J is the larger of two lines in x, of which Eq. 8 rises and Eq. 9 falls, so it is least where they meet.
  const double n = links.gpus, gpu = links.gpu_bits_per_second, cpu = links.cpu_bits_per_second;
  const double meeting = ((2 * n - 1) / n * cpu - gpu) / ((n - 1) * (gpu + cpu / n));
  return std::clamp(meeting, 0.0, 1.0);
}

double ring_seconds(uint32_t gpus, double bytes, double bottleneck_bits_per_second) {
  return 8 * bytes * 2 * (gpus - 1.0) / gpus / bottleneck_bits_per_second;
}

}  // namespace gleaner::machine
