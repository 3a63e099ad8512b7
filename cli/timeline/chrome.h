// Writes a merged trace as JSON in the Trace Event Format ("Chrome trace"), which https://ui.perfetto.dev opens. Pure.
//
// Each rank and summer is a process of the trace, with a track for each stage. Slices that overlap go to further tracks
// of the same name, so the slices of one track never overlap. Process 0 shows the steps and their critical paths.
#pragma once

#include <functional>
#include <vector>

#include "absl/strings/string_view.h"
#include "cli/timeline/critical_path.h"
#include "cli/timeline/steps.h"
#include "cli/timeline/timeline.h"

namespace gleaner::cli {

// `paths` has one path for each of `steps`; the path of an incomplete step has no segments. Calls `write` with the
// text, piece by piece.
void write_chrome_trace(const Timeline& timeline, const std::vector<Step>& steps, const std::vector<StepPath>& paths,
                        const std::function<void(absl::string_view)>& write);

}  // namespace gleaner::cli
