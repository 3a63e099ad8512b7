// What the command lines of all programs have in common: errors that name what is wrong and what was probably meant,
// and --completion. A number that is NaN or infinite is an error of any flag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace gleaner::flags {

// Parses the command line of a program whose flags and commands `app` has, and runs the callbacks of those chosen.
// None: the program goes on. Otherwise it ends with this exit status: 0 after --help, --version and --completion, which
// are printed here; 2 when the command line is wrong, which standard error is told.
std::optional<int> parse(CLI::App& app, int argc, const char* const* argv);

// Adds another spelling of a flag, which help and completion do not show: of those that had another name before.
// `flag` is there already.
void add_old_name(CLI::App& app, const std::string& flag, const std::string& old_name);

// The word that `word` probably means: the one with the fewest letters to add, drop, replace or swap; empty when all
// are too far.
std::string nearest(absl::string_view word, const std::vector<std::string>& known);

}  // namespace gleaner::flags
