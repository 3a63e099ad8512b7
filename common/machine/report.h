// Writes a machine and the way that was chosen for it, for people and for programs. Assumed bandwidths are marked.
// Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/machine/choice.h"
#include "common/machine/machine.h"

namespace gleaner::machine {

std::string to_text(const Machine& machine, const Choice& choice, const Step& step = {});

// Returns an object with the machine (json.h), all ways with their links, and the names of the chosen one, the
// runner-up and the one that Gleaner goes today. docs/topology.md lists the fields.
nlohmann::json to_json(const Machine& machine, const Choice& choice, const Step& step = {});

// Returns "105 Gbit/s *", where * marks an assumed bandwidth.
std::string words_of(const Bandwidth& bandwidth);
// Returns an element of a way's "links".
nlohmann::json to_json(const Link& link);

}  // namespace gleaner::machine
