#include "operator/autoscale/reduction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text_table.h"
#include "operator/autoscale/sentences.h"
#include "operator/autoscale/worth.h"

namespace gleaner::autoscale {

void Reduction::decide() {
  notice_gone();
  repeat_removals();
  remove_unsuitable();
  remove_above_maximum();
  remove_idle();
}

// Finds running summers that are gone and were not told to leave: they yielded to the owners of their machines, or were
// lost. In both cases the machine gets no summer of this job for a while.
void Reduction::notice_gone() {
  std::map<uint32_t, std::string> before = std::move(memory_.running);
  memory_.running.clear();
  for (const Summer& summer : job_.summers) {
    before.erase(summer.index);
    if (summer.running && !summer.leaving) memory_.running[summer.index] = summer.node;
  }
  for (const auto& [index, node] : before) {
    if (!memory_.removals.contains(index)) memory_.pauses.begin(node, settings_.return_pause, now_);
  }
}

// Repeats removals of earlier rounds until the summer is gone. A removal is never revoked.
void Reduction::repeat_removals() {
  std::map<uint32_t, Removal> before = std::move(memory_.removals);
  memory_.removals.clear();
  for (const Summer& summer : job_.summers) {
    const auto found = before.find(summer.index);
    if (found != before.end()) remove_summer(std::move(found->second), memory_, verdict_);
  }
}

void Reduction::remove_unsuitable() {
  for (const Summer& summer : job_.summers) {
    if (summer.leaving || memory_.removals.contains(summer.index)) continue;
    if (summer.suitability.has_value() && !summer.suitability->fits) {
      remove_summer({summer.index, Code::kOwnersNeedIt,
                     absl::StrCat("machine ", summer.node, " is needed by its owners: ", summer.suitability->why_not)},
                    memory_, verdict_);
      memory_.pauses.begin(summer.node, settings_.return_pause, now_);
    } else if (!summer.running && summer.age > settings_.start_patience) {
      remove_summer({summer.index, Code::kDidNotStart,
                     absl::StrCat("the summer does not run after ", absl::FormatDuration(settings_.start_patience))},
                    memory_, verdict_);
      memory_.pauses.begin(summer.node.empty() ? memory_.added_node : summer.node, settings_.return_pause, now_);
    }
  }
}

void Reduction::remove_above_maximum() {
  for (uint32_t left = count_staying(job_, verdict_); left > job_.max; --left) {
    const std::vector<uint32_t> gone = removed_summers(verdict_);
    const Worth worth(job_, settings_, gone);
    const Summer* least = nullptr;
    for (const Summer& summer : job_.summers) {
      if (summer.leaving || std::find(gone.begin(), gone.end(), summer.index) != gone.end()) continue;
      if (least == nullptr || worth.loss_seconds(summer.index) <= worth.loss_seconds(least->index)) least = &summer;
    }
    remove_summer(
        {least->index, Code::kAboveMaximum, absl::StrCat("the job allows ", counted(job_.max, "summer"), " at most")},
        memory_, verdict_);
  }
}

// Removes at most one summer.
void Reduction::remove_idle() {
  const Worth worth(job_, settings_, removed_summers(verdict_));
  if (worth.unknown().has_value() || count_staying(job_, verdict_) <= job_.min) {
    memory_.idle.forget();
    return;
  }
  const Summer* idle = memory_.idle.observe(job_, worth, now_);
  if (idle == nullptr || !verdict_.remove.empty()) return;
  remove_summer({idle->index, Code::kBuysNothing,
                 absl::StrCat("for ", absl::FormatDuration(memory_.idle.patience()), " the summer on ", idle->node,
                              " has saved less than ", percent(settings_.min_loss), " of the step")},
                memory_, verdict_);
  memory_.idle.on_removal(now_);
}

}  // namespace gleaner::autoscale
