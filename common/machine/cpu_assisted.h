// The model of CPU-assisted aggregation in a symmetric machine without NVLink (BytePS §4.2.1): p PCIe switches with n
// GPUs each, and a NIC with PCIe lanes of its own.
//
// GPUs of a switch reduce-scatter their gradients of M bytes, each copies its M/n to host memory, the CPU sums the
// contributions of the switches, and results return the same way. "Brute force" copies a share x of every gradient to
// host memory instead, and CPU-assisted aggregation takes the share y = 1 - x. Pure.
#pragma once

#include <cstdint>

namespace gleaner::machine {

// Bytes on one link each way, for each byte of a gradient.
struct SwitchTraffic {
  double cpu_link = 0;  // t(S, C)/M = nx + y (Eq. 8)
  double gpu_link = 0;  // t(N, S)/M = (2n-1)/n y + x (Eq. 9); the text before it names this edge e(N, C) by mistake
};
SwitchTraffic switch_traffic(uint32_t gpus_of_switch, double brute_force_share);

// The links of a symmetric machine.
struct SwitchLinks {
  uint32_t gpus = 0;               // n: of a switch
  double gpu_bits_per_second = 0;  // b(N, S)
  double cpu_bits_per_second = 0;  // b(S, C)
};

// Returns J(x) for gradients of `bytes`, in seconds: the time of the slower link.
double completion_seconds(const SwitchLinks& links, double bytes, double brute_force_share);

// Returns x*, the share with the least J(x). It is 1/(n+1) if both links have the same bandwidth.
double best_brute_force_share(const SwitchLinks& links);

// Returns J_ar = 2(np-1)M/(np b), the time of a ring all-reduce of all `gpus` = np GPUs, whose slowest link has this
// bandwidth. J_ca, with which §4.2.1 compares it, is J(0).
double ring_seconds(uint32_t gpus, double bytes, double bottleneck_bits_per_second);

}  // namespace gleaner::machine
