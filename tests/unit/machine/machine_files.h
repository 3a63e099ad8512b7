// Machines of the files in tests/unit/machine/machines, which its README describes.
#pragma once

#include <string>

#include "common/machine/candidates.h"
#include "common/machine/choice.h"
#include "common/machine/machine.h"

namespace gleaner::machine {

std::string text_of_file(const std::string& name);

// A file that can't be read fails the running test.
Machine machine_file(const std::string& name);

// Fail the running test if there is no choice, or no such link.
Choice choice_for(const Machine& machine, const Step& step = {});
const Link& link_of(const Candidate& candidate, LinkKind kind, const std::string& device);

const Candidate& candidate_of(const Choice& choice, Way way);

}  // namespace gleaner::machine
