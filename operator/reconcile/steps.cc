#include "operator/reconcile/steps.h"

namespace gleaner::reconcile {
namespace {

struct Purpose {
  const char* operator()(const ConfirmMissing&) const { return "confirm that pods are gone"; }
  const char* operator()(const WriteStatus&) const { return "write the status"; }
  const char* operator()(const EndSession&) const { return "end the session"; }
  const char* operator()(const EnsureBootstrap&) const { return "write the ConfigMap with the CA"; }
  const char* operator()(const CreateService&) const { return "write the Service of the workers"; }
  const char* operator()(const CreateWorkers&) const { return "create workers"; }
  const char* operator()(const CreateSummers&) const { return "create summers"; }
  const char* operator()(const ReleaseWorkers&) const { return "open the scheduling gates of workers"; }
  const char* operator()(const CreateRankMap&) const { return "write the ConfigMap with the ranks"; }
  const char* operator()(const LabelWorkers&) const { return "label workers with their ranks"; }
  const char* operator()(const WritePlan&) const { return "write the ReductionPlan"; }
  const char* operator()(const OpenSession&) const { return "open the session"; }
  const char* operator()(const TellSession&) const { return "report to the session"; }
  const char* operator()(const RemovePods&) const { return "remove pods"; }
  const char* operator()(const RecordEvents&) const { return "record Events"; }
  const char* operator()(const RemoveJob&) const { return "remove the job"; }
};

}  // namespace

const char* purpose_of(const Action& action) { return std::visit(Purpose(), action); }

}  // namespace gleaner::reconcile
