// The ways on which a gradient can travel between the GPUs of a machine, host memory and NICs, each with the loads of
// links and the time of a step. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/machine/loads.h"
#include "common/machine/machine.h"

namespace gleaner::machine {

// From the simplest to the most complicated; equal times go to the simpler way.
enum class Way {
  kCopy,           // every GPU copies its gradient to host memory, the CPU sums: brute force, x = 1 of §4.2.1
  kRoots,          // NVLink reduces to GPUs off the NICs' switches, and broadcasts from there (§4.2.2, §4.2.3 rule 1)
  kReduceScatter,  // reduce-scatter and all-gather over all GPUs (§4.2.3 rule 2)
  kCpuAssisted,    // reduce-scatter within each switch, the CPU sums what switches have (§4.2.1)
  kGpuDirect,      // NVLink reduces to GPUs at a NIC's switch, and the NIC reads their memory (§4.2.3, GDR)
  kSubNodes,       // one or two GPUs and a NIC at their switch are a worker of their own (EFLOPS §IV-A)
};

struct Candidate {
  Way way = Way::kCopy;
  std::string impossible;       // the reason for which this machine can't go this way; empty: it can
  std::string why;              // of the way: a sentence about the links that it spares
  std::string unable;           // the reason for which Gleaner does not go this way yet; empty: it does
  std::vector<uint32_t> roots;  // of kRoots and kGpuDirect, in turn
  std::vector<Link> links;      // that carry something
  double seconds = 0;           // of a step
  size_t busiest = 0;           // index of the link that determines it
  bool is_possible() const { return impossible.empty(); }
  bool runs() const { return unable.empty(); }
};

// Returns the name of a way in JSON ("copy", "cpu-assisted"), and in words.
std::string name_of(Way way);
std::string words_of(Way way);

// Returns a candidate for each way, in the order of Way. The machine passes check().
std::vector<Candidate> candidates(const Machine& machine, const Step& step);

// Returns the candidate of kRoots for these roots, for example others than candidates() chooses. The machine passes
// check(); NVLink joins all its GPUs.
Candidate with_roots(const Machine& machine, const Step& step, std::vector<uint32_t> roots);

// Returns the seconds of CPU-assisted aggregation with a share x by brute force: J(x) on this machine's links.
double cpu_assisted_seconds(const Machine& machine, const Step& step, double brute_force_share);

}  // namespace gleaner::machine
