// IdleSummers watches the summers of one job that are idle, which means that each of them saves less than
// Settings::min_loss of a step.
//
// A summer is removed once it has been idle for the patience. The patience is Settings::idle, and grows while removals
// turn out to be wrong.
#pragma once

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/autoscale/worth.h"

namespace gleaner::autoscale {

class IdleSummers {
 public:
  explicit IdleSummers(const Settings& settings) : settings_(settings), patience_(settings.idle) {}

  // Notes which summers are idle. Returns the one that saves least of those that have been idle for the patience, the
  // youngest among equals; null: there is none.
  const Summer* observe(const Job& job, const Worth& worth, absl::Duration now);
  // Forgets since when each summer has been idle.
  void forget() { since_.clear(); }
  // Notes that an idle summer is removed. The other summers count as busy again, since they may save more without it.
  void on_removal(absl::Duration now);
  // Notes that a summer is added. An addition soon after on_removal() shows that the removal was wrong, and doubles the
  // patience, up to kLongestPatience; another addition resets it.
  void on_addition(absl::Duration now);

  absl::Duration patience() const { return patience_; }

  static constexpr absl::Duration kLongestPatience = absl::Hours(1);

 private:
  Settings settings_;
  absl::Duration patience_;
  absl::flat_hash_map<uint32_t, absl::Duration> since_;  // since when each idle summer has been idle, by summer
  absl::Duration removed_ = -absl::InfiniteDuration();   // when an idle summer was last removed
};

}  // namespace gleaner::autoscale
