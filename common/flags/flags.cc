#include "common/flags/flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/flags/completion.h"

namespace gleaner::flags {
namespace {

constexpr absl::string_view kNumberType = "FLOAT";  // CLI11's name for the type of a flag that sets a double

// Letters to add, drop, replace or swap with their neighbour (optimal string alignment).
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

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // an old spelling
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  }
  return names;
}

bool has_flag(const CLI::App& app, const std::string& flag) {
  return flag.size() > 1 && app.get_option_no_throw(flag) != nullptr;
}

// CLI11 takes the next argument for the value of "--flag="; here it has an empty one. In the order that CLI11 wants.
std::vector<std::string> arguments_of(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  bool ours = true;  // not what comes after --
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    ours = ours && argument != "--";
    if (ours && argument.starts_with("--") && argument.ends_with("=")) {
      arguments.push_back(argument.substr(0, argument.size() - 1));
      arguments.emplace_back();
    } else {
      arguments.push_back(argument);
    }
  }
  std::reverse(arguments.begin(), arguments.end());
  return arguments;
}

// The command that was chosen: the innermost one.
CLI::App* chosen(CLI::App* app) {
  for (std::vector<CLI::App*> inner = app->get_subcommands(); !inner.empty(); inner = app->get_subcommands()) {
    app = inner.front();
  }
  return app;
}

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : absl::StrCat(path_of(*parent), " ", app.get_name());
}

std::string meant(const std::string& known) {
  return known.empty() ? "" : absl::StrCat("; did you mean '", known, "'?");
}

std::string unknown_flag(CLI::App& root, const CLI::App& command, const std::string& flag) {
  // One that stands before the command that has it.
  for (const CLI::App* inner : commands_of(root)) {
    const bool meant_it = &root == &command || inner == &command;
    if (meant_it && has_flag(*inner, flag)) {
      return absl::StrCat("unknown flag '", flag, "'; a command's flags come after it: '", path_of(*inner), " ", flag,
                          "'");
    }
  }
  return absl::StrCat("unknown flag '", flag, "'", meant(nearest(flag, flags_of(command))));
}

std::string unknown_word(CLI::App& command, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* inner : commands_of(command)) names.push_back(inner->get_name());
  if (names.empty()) return absl::StrCat("unexpected argument '", word, "'");
  return absl::StrCat("unknown command '", word, "'", meant(nearest(word, names)));
}

// The range checks of CLI11 let NaN pass, and a check for a least value lets infinity pass.
void refuse_unusual_numbers(CLI::App& app) {
  const auto check = [](const std::string& text) -> std::string {
    double number = 0;
    const bool is_wrong = absl::SimpleAtod(text, &number) && !std::isfinite(number);
    return is_wrong ? absl::StrCat("Value ", text, " is not a finite number") : "";
  };
  for (CLI::Option* option : app.get_options()) {
    if (absl::StartsWith(option->get_type_name(), kNumberType)) option->check(check, "");
  }
  for (CLI::App* inner : commands_of(app)) refuse_unusual_numbers(*inner);
}

// A wrong value that a variable gave to a flag is named by the variable.
std::string name_variable(const CLI::App& command, const std::vector<std::string>& arguments,
                          const std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string& variable = option->get_envname();
    const char* value = variable.empty() ? nullptr : std::getenv(variable.c_str());
    const std::string flag = option->get_name();
    absl::string_view wrong = message;
    if (value == nullptr || !absl::ConsumePrefix(&wrong, absl::StrCat(flag, ": "))) continue;
    const bool is_given = std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
      return argument == flag || absl::StartsWith(argument, absl::StrCat(flag, "="));
    });
    if (!is_given) return absl::StrCat(variable, "='", value, "': ", wrong);
  }
  return message;
}

// A flag or command that nobody knows is the cause of whatever else the parser complains of.
std::string explain(CLI::App& root, const std::vector<std::string>& arguments, const CLI::ParseError& error) {
  CLI::App& command = *chosen(&root);
  std::vector<std::string> unknown = root.remaining(true);
  const bool lacks_command = !commands_of(command).empty();  // what comes after it is no flag of this one
  if (lacks_command && !unknown.empty() && !absl::StartsWith(unknown.front(), "-")) {
    return unknown_word(command, unknown.front());
  }
  for (const std::string& word : unknown) {
    if (word == "--") break;
    if (absl::StartsWith(word, "-")) return unknown_flag(root, command, word.substr(0, word.find('=')));
  }
  if (!unknown.empty() && unknown.front() != "--") return unknown_word(command, unknown.front());
  return name_variable(command, arguments, error.what());
}

}  // namespace

std::string nearest(absl::string_view word, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;  // that is too far
  for (const std::string& candidate : known) {
    // An abbreviation is near, too.
    const bool begins = word.size() >= 4 && absl::StartsWith(candidate, word);
    const size_t far = begins ? 1 : distance(word, candidate);
    if (far < least) best = candidate;
    least = std::min(least, far);
  }
  return best;
}

void add_old_name(CLI::App& app, const std::string& flag, const std::string& old_name) {
  CLI::Option* const option = app.get_option(flag);
  app.add_option_function<std::string>(old_name,
                                       [option](const std::string& value) {
                                         option->clear();  // what the environment said
                                         option->add_result(value);
                                         option->run_callback();
                                       })
      ->group("");
}

std::optional<int> parse(CLI::App& app, int argc, const char* const* argv) {
  std::string shell;
  if (app.get_option_no_throw("--completion") == nullptr && commands_of(app).empty()) {
    app.add_option("--completion", shell, "Print a script that completes this command line: bash, zsh or fish")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->trigger_on_parse();
  }
  refuse_unusual_numbers(app);
  try {
    app.parse(arguments_of(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (!shell.empty()) {
      std::cout << completion_script(app, shell) << std::flush;
      return std::cout.good() ? 0 : 1;
    }
    if (error.get_exit_code() == 0) return app.exit(error);  // prints help or version
    const std::string command = path_of(*chosen(&app));
    std::cerr << command << ": " << explain(app, {argv + 1, argv + argc}, error) << "\n'" << command
              << " --help' lists all flags\n";
    return 2;
  }
  if (shell.empty()) return std::nullopt;
  std::cout << completion_script(app, shell) << std::flush;
  return std::cout.good() ? 0 : 1;
}

}  // namespace gleaner::flags
