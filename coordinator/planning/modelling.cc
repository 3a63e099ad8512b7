#include "coordinator/planning/modelling.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/units.h"
#include "common/plan/partitioner.h"
#include "common/strategy/choice.h"
#include "common/strategy/network_shares.h"

namespace gleaner::coordinator {
namespace {

constexpr double kSimilar = 1.25;          // times that differ by less are the same
constexpr double kSimilarOverhead = 1e-6;  // seconds; overheads that differ by less are the same, too

bool are_similar(double a, double b) { return a <= kSimilar * b && b <= kSimilar * a; }

}  // namespace

double Modelling::round_trip() const {
  return round_trip_seconds_ > 0 ? round_trip_seconds_ : strategy::kAssumedRoundTripSeconds;
}

double Modelling::overhead() const {
  return overhead_seconds_ > 0 ? overhead_seconds_ : strategy::kAssumedOverheadSeconds;
}

bool Modelling::suits_times(const strategy::ModelRequest& request) const {
  return are_similar(request.round_trip_seconds, round_trip()) &&
         (are_similar(request.overhead_seconds, overhead()) ||
          std::abs(request.overhead_seconds - overhead()) <= kSimilarOverhead);
}

absl::StatusOr<std::shared_ptr<const strategy::Models>> Modelling::of(const plan::Plan& plan) {
  if (!compares_ && plan.schedules.empty()) return std::make_shared<const strategy::Models>();
  want(plan);
  if (GLN_MUTATION("an event waits for models")) {
    if (const ModelRequest request = take_request()) on_modelled(request, carry_out(*request));
  }
  if (has_failed(plan)) return error_;
  return have(plan) ? models_ : nullptr;
}

void Modelling::want(const plan::Plan& plan) {
  if (on_way_ != nullptr || has_failed(plan) || (!compares_ && plan.schedules.empty())) return;
  // Cuts do not depend on the times of messages.
  if (have(plan) && (!compares_ || suits_times(*modelled_))) return;
  wanted_ = std::make_shared<const strategy::ModelRequest>(
      strategy::request_for(plan, network_, round_trip(), overhead(), compares_, summers_at(plan)));
}

absl::StatusOr<bool> Modelling::set_summer_switch(uint32_t summer, uint32_t at) {
  if (!knows_switches()) return absl::FailedPreconditionError("the job has no network with switches for its summers");
  const size_t switches = network_->topology.switches().size();
  if (at >= switches) {
    return absl::InvalidArgumentError(
        absl::StrCat("summer ", summer, " at switch ", at, "; expected less than ", switches));
  }
  if (switch_of_summer(summer) == at) return false;
  switches_[summer] = at;
  return true;
}

uint32_t Modelling::switch_of_summer(uint32_t summer) const {
  const auto found = switches_.find(summer);
  return found != switches_.end() ? found->second : strategy::switch_of(*network_, summer);
}

std::vector<uint32_t> Modelling::summers_at(const plan::Plan& plan) const {
  if (roster_ == nullptr || !knows_switches()) return {};
  std::vector<uint32_t> switches;
  for (uint32_t member = plan.workers; member < plan.members.size() && member < roster_->members(); ++member) {
    switches.push_back(switch_of_summer(roster_->index_of(roster_->seat_of_member(member))));
  }
  return switches;
}

std::vector<double> Modelling::shares_of(const plan::Plan& plan) const {
  if (network_ == nullptr) return {};
  return strategy::network_shares(plan, plan::fleet_of(plan).push_ratio, *network_, summers_at(plan));
}

ModelRequest Modelling::take_request() {
  if (wanted_ == nullptr) return nullptr;
  on_way_ = std::exchange(wanted_, nullptr);
  return on_way_;
}

std::string Modelling::take_note() {
  if (!compares_ || overhead_seconds_ == 0 || std::exchange(has_told_times_, true)) return "";
  return absl::StrCat("models: a message takes ", format_seconds(overhead()),
                      " of a processor at each end, a round trip ", format_seconds(round_trip()),
                      round_trip_seconds_ > 0 ? "" : " (assumed)");
}

absl::StatusOr<strategy::Models> Modelling::carry_out(const strategy::ModelRequest& request) {
  GLN_RARE("coordinator: strategies are modelled");
  return strategy::model(request);
}

void Modelling::on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models) {
  if (request != on_way_) return;
  on_way_ = nullptr;
  if (!models.ok()) {
    failed_ = request;
    error_ = models.status();
    return;
  }
  modelled_ = request;
  models_ = std::make_shared<const strategy::Models>(*std::move(models));
}

}  // namespace gleaner::coordinator
