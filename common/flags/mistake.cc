#include "common/flags/mistake.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/names.h"

namespace gleaner::flags {
namespace {

// Returns the number of letters to add, drop, replace or swap with their neighbour (optimal string alignment distance).
size_t distance(absl::string_view from, absl::string_view to) {
  std::vector<std::vector<size_t>> cost(from.size() + 1, std::vector<size_t>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) cost[i][0] = i;
  std::iota(cost[0].begin(), cost[0].end(), size_t{0});
  for (size_t i = 1; i <= from.size(); ++i) {
    for (size_t j = 1; j <= to.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (from[i - 1] != to[j - 1])});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[from.size()][to.size()];
}

// Returns the long names of the command's flags.
std::vector<std::string> flags_of(const CommandOutline& command) {
  std::vector<std::string> names;
  for (const FlagOutline& flag : command.flags) {
    if (flag.is_old_name) continue;
    std::copy_if(flag.names.begin(), flag.names.end(), std::back_inserter(names),
                 [](const std::string& name) { return absl::StartsWith(name, "--"); });
  }
  return names;
}

bool has_flag(const CommandOutline& command, const std::string& name) {
  return std::any_of(command.flags.begin(), command.flags.end(), [&](const FlagOutline& flag) {
    return std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end();
  });
}

std::string meant(const std::string& known) {
  return known.empty() ? "" : absl::StrCat("; did you mean '", known, "'?");
}

std::string unknown_flag(const Mistake& mistake, const std::string& flag) {
  // The flag may belong to a command but stand before it.
  for (const CommandOutline& inner : mistake.program.commands) {
    const bool meant_it = &mistake.program == &mistake.command || &inner == &mistake.command;
    if (meant_it && has_flag(inner, flag)) {
      return absl::StrCat("unknown flag '", flag, "'; a command's flags come after it: '", inner.path, " ", flag, "'");
    }
  }
  return absl::StrCat("unknown flag '", flag, "'", meant(nearest(flag, flags_of(mistake.command))));
}

std::string unknown_word(const CommandOutline& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CommandOutline& inner : command.commands) names.push_back(inner.name);
  if (names.empty()) return absl::StrCat("unexpected argument '", word, "'");
  return absl::StrCat("unknown command '", word, "'", meant(nearest(word, names)));
}

// If an environment variable gave a flag its wrong value, the message names the variable instead of the flag.
std::string name_variable(const Mistake& mistake, const std::string& message) {
  for (const FlagOutline& flag : mistake.command.flags) {
    const char* value = flag.variable.empty() ? nullptr : std::getenv(flag.variable.c_str());
    absl::string_view wrong = message;
    if (value == nullptr || !absl::ConsumePrefix(&wrong, absl::StrCat(flag.name, ": "))) continue;
    const bool is_given =
        std::any_of(mistake.arguments.begin(), mistake.arguments.end(), [&](const std::string& argument) {
          return argument == flag.name || absl::StartsWith(argument, absl::StrCat(flag.name, "="));
        });
    if (!is_given) return absl::StrCat(flag.variable, "=", quote(value), ": ", wrong);
  }
  return message;
}

// Adds an explanation for a value such as "5s", which CLI11 reports as a number out of range.
std::string explain_number(std::string message) {
  constexpr absl::string_view kBefore = "Value ", kAfter = " not in range";
  const size_t begin = message.find(std::string(kBefore)), end = message.find(std::string(kAfter));
  if (begin == std::string::npos || end == std::string::npos || end < begin + kBefore.size()) return message;
  const std::string value = message.substr(begin + kBefore.size(), end - begin - kBefore.size());
  double number = 0;
  if (!absl::SimpleAtod(value, &number)) absl::StrAppend(&message, "; expected a number, without a unit");
  return message;
}

}  // namespace

std::string explain(const Mistake& mistake) {
  const std::vector<std::string>& unknown = mistake.unknown;
  // Flags after an unknown command are not flags of this one.
  const bool lacks_command = !mistake.command.commands.empty();
  if (lacks_command && !unknown.empty() && !absl::StartsWith(unknown.front(), "-")) {
    return unknown_word(mistake.command, unknown.front());
  }
  for (const std::string& word : unknown) {
    if (word == "--") break;
    if (absl::StartsWith(word, "-")) return unknown_flag(mistake, word.substr(0, word.find('=')));
  }
  if (!unknown.empty() && unknown.front() != "--") return unknown_word(mistake.command, unknown.front());
  return name_variable(mistake, explain_number(mistake.message));
}

std::string nearest(absl::string_view word, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;  // exclusive limit of the distance
  for (const std::string& candidate : known) {
    // A word of at least four letters that is the beginning of the candidate counts as near.
    const bool begins = word.size() >= 4 && absl::StartsWith(candidate, word);
    const size_t far = begins ? 1 : distance(word, candidate);
    if (far < least) best = candidate;
    least = std::min(least, far);
  }
  return best;
}

}  // namespace gleaner::flags
