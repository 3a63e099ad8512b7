#include "operator/reconcile/strategy.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/schedule_name.h"
#include "operator/autoscale/autoscale.h"

namespace gleaner::reconcile {
namespace {

// Returns the strategy's name as a value of `gleaner run --strategy`.
const char* coordinator_name(api::Strategy wanted) {
  switch (wanted) {
    case api::Strategy::kAuto:
      return strategy::kAuto;
    case api::Strategy::kColocated:
    case api::Strategy::kSummers:
      return plan::kSummersStrategy;
    case api::Strategy::kRing:
      return "ring";
    case api::Strategy::kHalvingDoubling:
      return "halving-doubling";
    case api::Strategy::kDoubleTree:
      return "double-tree";
    case api::Strategy::kBCube:
      return "bcube";
    case api::Strategy::kBlueConnect:
      return "blueconnect";
    case api::Strategy::kTwoLevel:
      return "two-level";
    case api::Strategy::kRacks:
      return "racks";
    case api::Strategy::kGather:
      return plan::kGatherAlgorithm;
  }
  return plan::kSummersStrategy;
}

}  // namespace

absl::StatusOr<strategy::Strategy> strategy_of(const api::TrainingJob& job) {
  const api::Communication& wanted = job.communication;
  return strategy::make_strategy(coordinator_name(wanted.strategy), wanted.stages, wanted.radix);
}

std::optional<plan::Bits> bits_of(const api::TrainingJob& job) {
  if (!job.communication.bits.has_value()) return std::nullopt;
  return *job.communication.bits == api::Bits::kRankOrder ? plan::Bits::kRankOrder : plan::Bits::kSchedule;
}

absl::Status check_strategy(const api::TrainingJob& job) {
  coordinator::Options options;
  options.workers = job.workers.replicas;
  GLN_ASSIGN_OR_RETURN(options.reduction.strategy, strategy_of(job));
  options.reduction.bits = bits_of(job);
  return coordinator::validate(options);
}

void explain_no_summers(const api::TrainingJob& job, api::SummersStatus& summers) {
  if (job.communication.summers.max == 0 || api::uses_summers(job.communication.strategy)) return;
  summers.wanted = summers.had = 0;
  summers.reason = std::string(autoscale::to_string(autoscale::Code::kStrategyUsesNone));
  summers.message = absl::StrCat("the strategy ", api::to_string(job.communication.strategy),
                                 " sums between the workers and uses no summers; choose Auto or Summers to use them");
}

void report_strategy(const coordinator::JobState& session, StatusUpdate& update) {
  if (session.epoch > 0) update.status.communication.bits = plan::name_of(session.summary.bits.in_force);
  if (session.strategies.empty()) return;
  const std::string& in_force = session.summary.strategy;
  std::string& known = update.status.communication.strategy;
  if (known == in_force) return;
  if (!known.empty()) {
    std::string message =
        absl::StrCat("the plan of epoch ", session.epoch, " sums tensors by ", in_force, ", before by ", known);
    const std::vector<coordinator::StrategyChange>& changes = session.summary.strategy_changes;
    // Tensors that are new in the plan may add a strategy, too.
    if (!changes.empty() && changes.back().epoch == session.epoch) absl::StrAppend(&message, ": ", changes.back().why);
    update.add_event(false, "StrategyChanged", message);
  }
  known = in_force;
}

}  // namespace gleaner::reconcile
