// The merged trace as JSON of the Trace Event Format ("Chrome trace"), which https://ui.perfetto.dev opens. Pure.
//
// A process per rank and summer, tracks by stage in each. What overlaps on a track goes to further tracks of the same
// name, so that slices on one never cross. Process 0 has the steps, and where each one's time went.
#pragma once

#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/timeline/critical_path.h"
#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

// `paths`: of `steps`, one each; without segments where a step is incomplete. Calls `write` with the text, piece by
// piece.
void write_chrome_trace(const Timeline& timeline, const std::vector<Step>& steps, const std::vector<StepPath>& paths,
                        const std::function<void(absl::string_view)>& write);

}  // namespace gleaner::cli
