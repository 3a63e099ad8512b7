#include "tests/unit/reconcile/actions.h"

#include <gtest/gtest.h>

#include <utility>

namespace gleaner::reconcile {
namespace {

// Adds the action of one step to Actions.
struct Collect {
  void operator()(const ConfirmMissing& step) { all.confirm_missing = step.pods; }
  void operator()(const WriteStatus& step) {
    all.status = step.status;
    ++statuses;
  }
  void operator()(const EndSession& step) { all.end_session = step.why; }
  void operator()(const EnsureBootstrap&) {}
  void operator()(const CreateService&) { all.service = true; }
  void operator()(const CreateWorkers& step) { all.create = step.pods; }
  void operator()(const CreateSummers& step) {
    all.create_summers = step.pods;
    all.events.push_back(step.note);
  }
  void operator()(const ReleaseWorkers& step) { all.release = step.pods; }
  void operator()(const CreateRankMap& step) { all.rank_map = step.object; }
  void operator()(const LabelWorkers& step) { all.rank_labels = step.pods; }
  void operator()(const WritePlan& step) { all.plan = step.plan; }
  void operator()(const OpenSession& step) { all.session = step.options; }
  void operator()(const TellSession& step) { all.tell = step; }
  void operator()(const RemovePods& step) { all.remove = step.pods; }
  void operator()(const RecordEvents& step) {
    all.events.insert(all.events.end(), step.events.begin(), step.events.end());
  }
  void operator()(const RemoveJob&) { all.remove_job = true; }

  Actions all;
  int statuses = 0;
};

}  // namespace

Actions actions_of(const Decision& decision) {
  Collect collect;
  for (const Step& step : decision.steps()) std::visit(collect, step.action);
  EXPECT_EQ(collect.statuses, 1) << "a decision writes the status once";
  collect.all.requeue_after = decision.requeue_after();
  return std::move(collect.all);
}

}  // namespace gleaner::reconcile
