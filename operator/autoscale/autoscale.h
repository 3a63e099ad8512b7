// The input and output of the autoscaler (autoscaler.h), as plain values. docs/autoscaler.md describes the rules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/fabric/fabric.h"

namespace gleaner::autoscale {

struct Settings {
  // True: Prometheus measures jobs and machines. False: the autoscaler assumes that a step is all communication, at its
  // bound.
  bool measured = false;
  double min_gain = 0.01;   // share of the step time that one more summer must save
  double min_loss = 0.005;  // a summer that saves less than this share of the step time for `idle` is removed
  absl::Duration idle = absl::Minutes(2);
  absl::Duration grow_pause = absl::Minutes(1);  // between two additions to one job
  // Pause before a machine that had to give up its summer may get one again.
  absl::Duration return_pause = absl::Seconds(30);
  absl::Duration fresh = absl::Minutes(1);           // the autoscaler does not use older readings
  absl::Duration start_patience = absl::Minutes(2);  // a new summer must run within this time
  // A job takes a machine from another job of the same priority only if the share that it gains is at least this many
  // times the share that the other job loses.
  double take_over = 2;
};

// A measured value, and how long ago it was measured.
struct Reading {
  double value = 0;
  absl::Duration age;
};

// A machine that could take one more summer of a job.
struct Candidate {
  std::string node;
  double bits_per_second = 0;
  // The lowest values within the Prometheus window; absent without Settings::measured, or if Prometheus has no values.
  std::optional<Reading> spare_cpus, spare_bits_per_second;
};

// Whether the machine of a summer still has enough spare resources for it.
struct Suitability {
  bool fits = false;
  std::string why_not;
};

struct Summer {
  uint32_t index = 0;
  std::string node;  // empty: the scheduler has not chosen one yet
  double bits_per_second = 0;
  bool running = false;
  bool leaving = false;  // the summer's pod is being deleted
  absl::Duration age;
  std::optional<Suitability> suitability;  // absent: the machine has no recent NodeProfile
};

// A machine that would be a candidate if the summer of another job left it.
struct Contested {
  Candidate machine;
  std::string holder;  // key of the other job
  uint32_t index = 0;  // index of its summer
};

struct Job {
  std::string key;
  int32_t priority = 0;  // priority of its workers' pods
  uint32_t min = 0, max = 0;
  double summer_cpus = 0;  // CPUs that placement reserves for one of its summers
  std::vector<double> worker_bits_per_second;
  std::vector<std::string> worker_nodes;  // of each worker; empty without `fabric`
  // The network of the cluster; null: no uplink of known bandwidth parts the machines of this job and those that its
  // summers could get.
  std::shared_ptr<const fabric::Fabric> fabric;
  double bytes_per_step = 0;  // 0: unknown yet
  double push_ratio = 1;      // bytes that workers push for each byte of the result (plan::Fleet)
  std::optional<Reading> step_seconds;
  std::optional<Reading> exposed_seconds;  // exposed communication: the time of a step in which training waits for sums
  std::vector<Summer> summers;             // running or about to run
  std::vector<Candidate> candidates;       // best first
  std::vector<Contested> contested;
};

// Reason of a verdict. to_string() returns its name in Events, in status and in metrics.
enum class Code {
  kAsWanted,      // no other number would be better
  kWorthIt,       // one more summer shortens the step enough
  kBelowMinimum,  // the job has fewer summers than its minimum
  kAtMaximum,     // the job has its maximum
  kAboveMaximum,  // the job has more than its maximum
  kNotWorthIt,    // one more summer would not shorten the step enough
  kNoMachine,     // no machine has enough spare resources
  kOutbid,        // the machine goes to another job
  kGivesWay,      // a summer leaves its machine to another job
  kOwnersNeedIt,  // the owners of a machine need the resources that its summer uses
  kBuysNothing,   // the step would hardly be longer without the summer
  kDidNotStart,   // a new summer does not run in time
  kPausing,       // the last addition is too recent
  kNoMetrics,     // the number stays as it is: Prometheus has no metrics of the job
  kStaleMetrics,  // the number stays as it is: the job's metrics are too old
  kNotPlanned,    // the number stays as it is: the job has declared no tensors yet
  // The job's strategy uses no summers, so the autoscaler does not decide about the job. The operator reports it.
  kStrategyUsesNone,
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
  std::vector<Removal> remove;  // repeated in every round until the summer is gone
  Code code = Code::kAsWanted;
  std::string why;   // one sentence
  double share = 0;  // share of the step time that the addition saves, or that the best possible addition would save
};

}  // namespace gleaner::autoscale
