// What the autoscaler is told and what it says: values only (docs/autoscaler.md has the rules in words).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::autoscale {

struct Settings {
  bool measured = false;  // jobs are measured; without that a step is taken to be all communication, at its bound
  double worth = 0.01;    // share of the step that one more summer must buy
  double keep = 0.005;    // a summer that buys a smaller share for `idle` goes
  absl::Duration idle = absl::Minutes(2);
  absl::Duration grow_pause = absl::Minutes(1);      // between two additions to a job
  absl::Duration return_pause = absl::Seconds(30);   // before a machine whose owners needed it is asked again
  absl::Duration fresh = absl::Minutes(1);           // metrics that are older say nothing about now
  absl::Duration start_patience = absl::Minutes(2);  // for a new summer to run
  double take_over = 2;  // a job must gain so many times what another of its priority would lose by giving way
};

// A number that somebody measured, that long ago.
struct Reading {
  double value = 0;
  absl::Duration age;
};

// A machine that could take one more summer of a job.
struct Candidate {
  std::string node;
  double bits_per_second = 0;
  // The least of late, where jobs are measured.
  std::optional<Reading> spare_cpus, spare_bits_per_second;
};

// What a summer's machine has left for it now.
struct Room {
  bool fits = false;
  std::string why_not;
};

struct Summer {
  uint32_t index = 0;
  std::string node;  // empty: not placed yet
  double bits_per_second = 0;
  bool running = false;
  bool leaving = false;  // somebody else has told it to go
  absl::Duration age;
  std::optional<Room> room;  // none: nobody can say
};

// A machine that would do if a summer of another job gave way.
struct Contested {
  Candidate machine;
  std::string holder;  // job key
  uint32_t index = 0;  // of its summer
};

struct Job {
  std::string key;
  int32_t priority = 0;  // of its workers' pods
  uint32_t min = 0, max = 0;
  double summer_cpus = 0;  // that a summer asks for
  std::vector<double> worker_bits_per_second;
  double bytes_per_step = 0;  // 0: not known yet
  std::optional<Reading> step_seconds;
  std::optional<Reading> exposed_seconds;  // of a step: its caller waited so long for sums
  std::vector<Summer> summers;             // those that are there or about to be
  std::vector<Candidate> candidates;       // best first
  std::vector<Contested> contested;
};

// Why. As text: to_string(), what Events, status and metrics call it.
enum class Code {
  kAsWanted,      // nothing would be better
  kWorthIt,       // one more shortens the step enough
  kBelowMinimum,  // fewer than the job's minimum
  kAtMaximum,     // as many as the job allows
  kAboveMaximum,  // more than that
  kNotWorthIt,    // one more would not buy enough
  kNoMachine,     // no machine has enough to spare
  kOutbid,        // another job got the machine
  kGivesWay,      // another job needs the machine more
  kOwnersNeedIt,  // the machine's owners need what the summer has
  kBuysNothing,   // the step would hardly be longer without it
  kDidNotStart,   // it does not run
  kPausing,       // the last change is too young
  kNoMetrics,     // hold: Prometheus has none
  kStaleMetrics,  // hold: they are old
  kNotPlanned,    // hold: the job has no tensors yet
};
absl::string_view to_string(Code code);

struct Removal {
  uint32_t index = 0;
  Code code = Code::kBuysNothing;
  std::string why;  // one sentence
};

struct Verdict {
  uint32_t wanted = 0;  // k
  std::optional<Candidate> add;
  std::vector<Removal> remove;  // said in every round until the summer is gone
  Code code = Code::kAsWanted;
  std::string why;   // one sentence
  double share = 0;  // of the step, that the addition, or the best one there could be, buys
};

}  // namespace gleaner::autoscale
