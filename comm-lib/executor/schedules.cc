#include "comm-lib/executor/schedules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/wire/frame.h"

namespace gleaner::executor {
namespace {

// Checks that the messages about the tensors of a plan fit into frames.
absl::Status check_messages(const plan::Plan& plan, const std::vector<std::shared_ptr<const Program>>& programs) {
  std::map<std::pair<uint32_t, size_t>, uint64_t> largest;  // by schedule and size of an element: elements
  for (const plan::Partition& partition : plan.partitions) {
    const plan::Tensor& tensor = plan.tensors[partition.tensor];
    if (!tensor.schedule.has_value()) continue;
    const bool gathers = programs[*tensor.schedule]->gathers();
    const plan::Encoding types = plan.encoding(tensor);
    const size_t element = size_of(gathers ? types.contribution : types.partial);
    uint64_t& elements = largest[{*tensor.schedule, element}];
    elements = std::max<uint64_t>(elements, types.elements(partition.bytes));
  }
  for (const auto& [key, elements] : largest) {
    const auto& [schedule, element] = key;
    const uint64_t bytes = programs[schedule]->largest_message(elements) * element;
    if (bytes <= wire::kMaxPayloadBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("the plan of epoch ", plan.epoch, " has partitions of ", elements,
                                                   " elements for schedule ", schedule, " (",
                                                   plan.schedules[schedule].algorithm, "), whose messages then have ",
                                                   bytes, " bytes; a frame has at most ", wire::kMaxPayloadBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Schedules::prepare(const plan::Plan& plan, uint32_t worker) {
  Programs programs = programs_;
  for (size_t i = programs.size(); i < plan.schedules.size(); ++i) {
    const collective::Spec& spec = plan.schedules[i];
    const auto end = plan.schedules.begin() + static_cast<ptrdiff_t>(i);
    const auto equal = std::find(plan.schedules.begin(), end, spec);
    if (equal != end) {
      programs.push_back(programs[static_cast<size_t>(equal - plan.schedules.begin())]);
      continue;
    }
    const uint32_t rank = spec.rank_of.empty() ? worker : spec.rank_of[worker];
    const auto schedule = collective::make_schedule(spec, collective::Collective{.ranks = plan.workers}, rank);
    if (!schedule.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("the plan of epoch ", plan.epoch, " has schedule ", i, " (",
                                                     spec.algorithm, "), which ", plan.workers,
                                                     " workers can't execute: ", schedule.status().message()));
    }
    programs.push_back(std::make_shared<const Program>(*schedule, spec.rank_of, worker));
  }
  GLN_RETURN_IF_ERROR(check_messages(plan, programs));
  prepared_ = std::move(programs);
  prepared_epoch_ = plan.epoch;
  return absl::OkStatus();
}

absl::Status Schedules::apply(const plan::Plan& plan, uint32_t worker) {
  if (prepared_epoch_ != plan.epoch || prepared_.size() != plan.schedules.size()) {
    GLN_RETURN_IF_ERROR(prepare(plan, worker));
  }
  programs_ = std::move(prepared_);
  prepared_ = {};
  prepared_epoch_ = 0;
  of_tensor_.resize(plan.tensors.size());
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].schedule.has_value()) of_tensor_[i] |= Set{1} << *plan.tensors[i].schedule;
    used_ |= of_tensor_[i];
  }
  return absl::OkStatus();
}

}  // namespace gleaner::executor
