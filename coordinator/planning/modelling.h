// Modelling keeps the models of a job's strategies (common/strategy/models.h). It asks the job's driver for new ones
// when the members that own partitions, their bandwidths or their switches change, when a plan has new schedules, or
// when the round trip or the overhead of a message changes by more than a quarter, the overhead also by more than a
// microsecond; in the last two cases the present models serve meanwhile. It takes long to make models, so no event
// waits for them: an action asks for them, and an event brings them. Pure; belongs to a Planner.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "common/strategy/models.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class Modelling {
 public:
  // `roster` has the members of the plans, and must outlive this object. Null: the index of each summer is its place.
  explicit Modelling(const Options::Reduction& reduction, const Roster* roster = nullptr)
      : network_(reduction.network), roster_(roster), compares_(is_auto(reduction.strategy)) {}

  // Set the round trip between members, and how long a processor takes to send a message, and to receive one. 0: not
  // measured.
  void set_round_trip(double seconds) { round_trip_seconds_ = seconds; }
  void set_message_overhead(double seconds) { overhead_seconds_ = seconds; }

  // Returns the models for this plan. Null: they are not made yet; the caller passes on take_request(), and asks again
  // after on_modelled(). An error: models for this plan can't be made. A job whose owners sum all tensors has empty
  // models.
  absl::StatusOr<std::shared_ptr<const strategy::Models>> of(const plan::Plan& plan);
  // Asks for the models of this plan, if the present ones do not fit.
  void want(const plan::Plan& plan);
  // Returns whether the job compares strategies and no models were asked for yet.
  bool is_unasked() const {
    return compares_ && wanted_ == nullptr && on_way_ == nullptr && modelled_ == nullptr && failed_ == nullptr;
  }
  // Returns the present models, if they are for this plan; else null.
  const strategy::Models* present(const plan::Plan& plan) const { return have(plan) ? models_.get() : nullptr; }
  // Sets the switch of the job's network to which the link of this summer leads, by its index among the switches.
  // Returns whether it changes. FailedPrecondition: the job has no network with JobNetwork::summers_at.
  // InvalidArgument: the network has no such switch.
  absl::StatusOr<bool> set_summer_switch(uint32_t summer, uint32_t at);
  // Returns the switch of each CPU summer of the plan, by its place; nothing if the network of the job has none.
  std::vector<uint32_t> summers_at(const plan::Plan& plan) const;
  // Returns the share of each member of the plan by the network of the job (strategy::network_shares()). Empty: the
  // bandwidths of the members alone decide.
  std::vector<double> shares_of(const plan::Plan& plan) const;

  // Returns a request that the driver has to carry out, each one once. Null: there is none. The next one follows when
  // this one is answered.
  ModelRequest take_request();
  // Returns a line for the log that names the measured times of messages, when the last request is the first one with
  // them; else an empty text.
  std::string take_note();
  // Carries out a request, which may take half a second. Any thread may call it.
  static absl::StatusOr<strategy::Models> carry_out(const strategy::ModelRequest& request);
  // The answer to a request. Ignores that to a request of another Modelling.
  void on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models);

 private:
  bool knows_switches() const { return network_ != nullptr && network_->summers_at.has_value(); }
  uint32_t switch_of_summer(uint32_t summer) const;
  double round_trip() const;
  double overhead() const;
  bool suits_times(const strategy::ModelRequest& request) const;
  bool has_failed(const plan::Plan& plan) const {
    return failed_ != nullptr && failed_->is_for(plan) && failed_->summers_at == summers_at(plan);
  }
  bool have(const plan::Plan& plan) const {
    return models_ != nullptr && modelled_->serves(plan, *models_) && modelled_->summers_at == summers_at(plan);
  }

  const std::shared_ptr<const strategy::JobNetwork> network_;
  const Roster* const roster_;
  absl::flat_hash_map<uint32_t, uint32_t> switches_;  // by summer: that of set_summer_switch()
  const bool compares_;  // whether the job compares strategies; else it needs to know what its schedule does
  double round_trip_seconds_ = 0;
  double overhead_seconds_ = 0;
  bool has_told_times_ = false;
  ModelRequest wanted_;    // not taken yet
  ModelRequest on_way_;    // taken, and not answered yet
  ModelRequest modelled_;  // answered with models_
  std::shared_ptr<const strategy::Models> models_;
  ModelRequest failed_;  // answered with error_, which each further request for such a plan would be
  absl::Status error_;
};

}  // namespace gleaner::coordinator
