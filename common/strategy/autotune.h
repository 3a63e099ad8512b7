// Autotune decides which ranks of the two-level strategy master how many chunks while a job runs, so that links which
// become slower or faster do not make steps longer than necessary. Source: PLink, Luo §4.2.3.
//
// Autotune compares the training speed of each measurement with that of the one before:
// - *Quicktune*: the speed has changed by more than a fifth. All numbers of chunks are chosen anew by the measured
//   bandwidths (masters.h).
// - *Finetune*: follows, one move for each measurement, until the ranks are balanced. The rank with the highest blame
//   gives the mastership of a chunk to the one with the lowest: a global one, or else a local one, which stays within
//   its group. While the same rank has the highest blame, each move has twice as many chunks as the last one.
//
// The blame of rank i is β·l̂(i) + γ·t̂(i). l̂ is the rank's load l(i), all that it carries each way, scaled to 0 for the
// least and 1 for the largest load. t̂ is t(i) = max RTT(i) + l(i) / bandwidth(i), divided by the mean of t. Ranks are
// balanced if the highest blame of a rank that masters chunks is less than ε times the lowest of all. Since l̂ shows the
// slightest difference of loads as 1, it counts as 0 for all ranks if the largest load is less than ε times the least.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/collective/schedule.h"
#include "common/collective/two_level.h"

namespace gleaner::strategy {

struct AutotuneOptions {
  double change = 0.2;     // of the speed, from which on Quicktune takes over
  double load_weight = 1;  // β
  double time_weight = 1;  // γ
  double balance = 1.05;   // ε
};

class Autotune {
 public:
  // The measurements of a job since the last decision.
  struct Measured {
    double speed = 0;                        // steps or samples per second
    double bytes = 0;                        // of a step's gradients
    std::vector<double> bits_per_second;     // by rank: of its links to all others together
    std::vector<double> round_trip_seconds;  // by rank: the longest one to another rank
  };

  // `groups`: as check_groups() accepts. `counts`: with which the job begins.
  Autotune(collective::Groups groups, collective::MasterCounts counts, AutotuneOptions options = {});

  // Returns the numbers with which the job should go on; nothing if they should not change. Ignores a measurement that
  // lacks a speed or a bandwidth above 0 for some rank.
  std::optional<collective::MasterCounts> next_weights(const Measured& measured);

  const collective::MasterCounts& counts() const { return counts_; }
  // The job goes on with these numbers for as many chunks, not with those of next_weights().
  void set_counts(collective::MasterCounts counts) { counts_ = std::move(counts); }
  // Returns whether the last measurement showed balanced ranks.
  bool is_balanced() const { return !tuning_; }

 private:
  struct Blame {
    std::vector<double> of_rank;
    bool balanced = false;
  };

  Blame blame(const Measured& measured) const;
  bool finetune(const std::vector<double>& blame);
  // Moves up to `most` masterships from one rank to another one. Returns how many.
  uint32_t move_global(uint32_t from, uint32_t to, uint32_t most);
  uint32_t move_local(uint32_t from, uint32_t to, uint32_t most);

  const collective::Groups groups_;
  const AutotuneOptions options_;
  std::vector<uint32_t> group_of_;  // by rank
  uint32_t chunks_ = 0;
  collective::MasterCounts counts_;
  std::optional<double> speed_;  // that was measured last; none: not yet, or not since Quicktune
  bool tuning_ = true;           // Finetune goes on
  std::optional<uint32_t> last_blamed_;
  uint32_t repeats_ = 0;  // of last_blamed_ in a row
};

}  // namespace gleaner::strategy
