// Explains errors in a command line, and suggests the word that the user probably meant. Pure, but for the environment:
// an error in the value of an environment variable names the variable.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/flags/outline.h"

namespace gleaner::flags {

// A command line that the parser rejected.
struct Mistake {
  const CommandOutline& program;
  const CommandOutline& command;       // the innermost command that was given; the program itself if none was
  std::vector<std::string> arguments;  // all words of the command line
  std::vector<std::string> unknown;    // words for which the parser found no meaning
  std::string message;                 // the parser's error message
};

// Returns the explanation, in one line. An unknown flag or command comes first, since it may have caused the error that
// the parser reports.
std::string explain(const Mistake& mistake);

// Returns the known word that `word` probably means: the one with the fewest letters to add, drop, replace or swap.
// Empty if all are too different.
std::string nearest(absl::string_view word, const std::vector<std::string>& known);

}  // namespace gleaner::flags
