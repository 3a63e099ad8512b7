#include "common/flags/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/address.h"
#include "common/base/names.h"
#include "common/flags/completion.h"
#include "common/flags/mistake.h"

namespace gleaner::flags {
namespace {

constexpr absl::string_view kNumberType = "FLOAT";  // CLI11's type name of a flag that sets a double

std::vector<CLI::App*> commands_of(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : absl::StrCat(path_of(*parent), " ", app.get_name());
}

// Returns the words that an option accepts, from its type name: CLI::IsMember makes it "TEXT:{json,table}".
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',', absl::SkipEmpty());
}

FlagOutline outline_of(const CLI::Option& option) {
  FlagOutline outline{option.get_name(), {}, words_of(option), option.get_envname(), option.get_group().empty()};
  for (const std::string& name : option.get_lnames()) outline.names.push_back(absl::StrCat("--", name));
  for (const std::string& name : option.get_snames()) outline.names.push_back(absl::StrCat("-", name));
  return outline;
}

CommandOutline outline_of(const CLI::App& app) {
  CommandOutline outline{app.get_name(), path_of(app), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) outline.flags.push_back(outline_of(*option));
  for (const CLI::App* inner : app.get_subcommands([](const CLI::App*) { return true; })) {
    outline.commands.push_back(outline_of(*inner));
  }
  return outline;
}

// Returns the innermost command on the command line.
const CLI::App& innermost(const CLI::App& app) {
  const std::vector<CLI::App*> inner = app.get_subcommands();
  return inner.empty() ? app : innermost(*inner.front());
}

// Returns the command with this path. It must exist.
const CommandOutline& find(const CommandOutline& outline, const std::string& path) {
  for (const CommandOutline& inner : outline.commands) {
    if (path == inner.path || absl::StartsWith(path, absl::StrCat(inner.path, " "))) return find(inner, path);
  }
  return outline;
}

// CLI11 takes an argument such as "[1,2]" apart, as a list of values. shield() puts a zero byte, which no argument has,
// before such an argument, and unshield() removes it.
std::string shield(const std::string& argument) {
  const bool is_list = argument.starts_with('[') && argument.ends_with(']');
  return is_list ? absl::StrCat(absl::string_view("\0", 1), argument) : argument;
}
std::string unshield(std::string argument) {
  if (argument.starts_with('\0')) argument.erase(0, 1);
  return argument;
}

// Unshields values before they are checked, and before the targets get them.
void unshield_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) option->transform(unshield);
  for (CLI::App* inner : commands_of(app)) unshield_values(*inner);
}

std::vector<std::string> unshielded(std::vector<std::string> arguments) {
  std::transform(arguments.begin(), arguments.end(), arguments.begin(), unshield);
  return arguments;
}

// Returns the arguments in reverse order, as CLI11 wants them, and shielded. "--flag=" becomes the flag and an empty
// value; CLI11 would take the next argument as the value.
std::vector<std::string> reversed(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  bool ours = true;  // false: the argument comes after --
  for (const std::string& argument : arguments) {
    ours = ours && argument != "--";
    if (ours && argument.starts_with("--") && argument.ends_with("=")) {
      result.push_back(argument.substr(0, argument.size() - 1));
      result.emplace_back();
    } else {
      result.push_back(shield(argument));
    }
  }
  std::reverse(result.begin(), result.end());
  return result;
}

// Return the error of a number, or an empty string, as CLI11 wants them.
std::string is_finite(const std::string& text) {
  double number = 0;
  const bool is_wrong = absl::SimpleAtod(text, &number) && !std::isfinite(number);
  return is_wrong ? absl::StrCat("Value ", text, " is not a finite number") : "";
}
std::string is_signed(const std::string& text) {
  errno = 0;
  std::strtoll(text.c_str(), nullptr, 0);
  return errno == ERANGE ? absl::StrCat("Value ", text, " has more than 64 bits") : "";
}
std::string is_unsigned(const std::string& text) {
  if (absl::StrContains(text, '-')) return absl::StrCat("Value ", text, " is not a number from 0 on");
  errno = 0;
  std::strtoull(text.c_str(), nullptr, 0);
  return errno == ERANGE ? absl::StrCat("Value ", text, " has more than 64 bits") : "";
}

// Rejects NaN, infinity, and integers that their type does not have. CLI11's range checks accept NaN, its checks for a
// minimum accept infinity, and it takes the largest integer for a larger one and 2^64 - 1 for -1.
void refuse_unusual_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (absl::StartsWith(type, kNumberType)) option->check(is_finite, "");
    if (absl::StartsWith(type, "INT")) option->check(is_signed, "");
    if (absl::StartsWith(type, "UINT")) option->check(is_unsigned, "");
  }
  for (CLI::App* inner : commands_of(app)) refuse_unusual_numbers(*inner);
}

// Return the error of a text in the same way.
std::string is_address(const std::string& text) { return std::string(Address::parse(text).status().message()); }
std::string is_peer_address(const std::string& text) {
  const auto address = Address::parse(text);
  if (!address.ok()) return std::string(address.status().message());
  return address->port > 0 ? "" : absl::StrCat("nobody can connect to port 0; expected a port above 0 in ", text);
}
std::string is_name(const std::string& text) { return std::string(check_name("the name", text).message()); }

}  // namespace

Flag& Flag::required() {
  option_->required();
  return *this;
}

Flag& Flag::show_default() {
  option_->capture_default_str();
  return *this;
}

Flag& Flag::environment(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Flag& Flag::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Flag& Flag::one_of_any_case(const std::vector<std::string>& words) {
  option_->transform(CLI::IsMember(words, CLI::ignore_case));
  return *this;
}

Flag& Flag::between(int64_t least, int64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::between(uint64_t least, uint64_t most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::between(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}

Flag& Flag::positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Flag& Flag::address() {
  option_->check(is_address, "");
  return *this;
}

Flag& Flag::peer_address() {
  option_->check(is_peer_address, "");
  return *this;
}

Flag& Flag::optional_address() {
  option_->check([](const std::string& text) { return text.empty() ? "" : is_address(text); }, "");
  return *this;
}

Flag& Flag::name() {
  option_->check(is_name, "");
  return *this;
}

Flag& Flag::optional_name() {
  option_->check([](const std::string& text) { return text.empty() ? "" : is_name(text); }, "");
  return *this;
}

Flag Command::add_text(const std::string& names, std::string& target, const std::string& help) {
  return Flag(*app_->add_option(names, target, help));
}

Flag Command::add_texts(const std::string& names, std::vector<std::string>& target, const std::string& help) {
  return Flag(*app_->add_option(names, target, help));
}

Flag Command::add_number(const std::string& names, double& target, const std::string& help) {
  return Flag(*app_->add_option(names, target, help));
}

Flag Command::add_number(const std::string& names, int& target, const std::string& help) {
  return Flag(*app_->add_option(names, target, help));
}

Flag Command::add_number(const std::string& names, int64_t& target, const std::string& help) {
  return Flag(*app_->add_option(names, target, help));
}

Flag Command::add_number(const std::string& names, uint32_t& target, const std::string& help) {
  return Flag(*app_->add_option(names, target, help));
}

Flag Command::add_number(const std::string& names, uint64_t& target, const std::string& help) {
  return Flag(*app_->add_option(names, target, help));
}

Flag Command::add_switch(const std::string& names, bool& target, const std::string& help) {
  return Flag(*app_->add_flag(names, target, help));
}

void Command::add_old_name(const std::string& flag, const std::string& old_name) {
  CLI::Option* const option = app_->get_option(flag);
  app_->add_option_function<std::string>(old_name,
                                         [option](const std::string& value) {
                                           option->clear();  // drops a value from the environment
                                           option->add_result(value);
                                           option->run_callback();
                                         })
      ->group("");
}

bool Command::has_on_command_line(const std::string& flag) const {
  const std::vector<CLI::Option*>& given = app_->parse_order();
  return std::find(given.begin(), given.end(), app_->get_option(flag)) != given.end();
}

Command Command::add_command(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}

void Command::require_command() { app_->require_subcommand(1); }

void Command::end_flags_at_first_positional() { app_->positionals_at_end(); }

void Command::add_footer(const std::string& text) { app_->footer(text); }

void Command::on_chosen(std::function<void()> action) { app_->callback(std::move(action)); }

CommandOutline Command::outline() const { return outline_of(*app_); }

Program::Program(const std::string& name, const std::string& help, const std::string& version)
    : Program(std::make_unique<CLI::App>(help)) {
  app_->name(name);
  if (!version.empty()) app_->set_version_flag("--version", version);
}

Program::Program(std::unique_ptr<CLI::App> app) : Command(*app), app_(std::move(app)) {}

Program::~Program() = default;

std::optional<int> Program::parse(int argc, const char* const* argv) {
  completion_.clear();
  if (app_->get_option_no_throw("--completion") == nullptr && commands_of(*app_).empty()) {
    app_->add_option("--completion", completion_, "Print a script that completes this command line: bash, zsh or fish")
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->trigger_on_parse();
  }
  refuse_unusual_numbers(*app_);
  unshield_values(*app_);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    app_->parse(reversed(arguments));
  } catch (const CLI::ParseError& error) {
    if (!completion_.empty()) return print_completion();
    if (error.get_exit_code() == 0) {
      app_->exit(error);  // prints help or version
      return end_output();
    }
    const CommandOutline program = outline_of(*app_);
    const CommandOutline& command = find(program, chosen());
    std::cerr << command.path << ": "
              << explain({program, command, arguments, unshielded(app_->remaining(true)), error.what()}) << "\n'"
              << command.path << " --help' lists all flags\n";
    return 2;
  }
  if (completion_.empty()) return std::nullopt;
  return print_completion();
}

int Program::print_completion() const {
  std::cout << completion_script(outline_of(*app_), completion_);
  return end_output();
}

int Program::end_output() const {
  std::cout << std::flush;
  return report(std::cout.good() ? absl::OkStatus() : absl::UnavailableError("cannot write to standard output"));
}

std::string Program::chosen() const { return path_of(innermost(*app_)); }

int Program::report(const absl::Status& status) const {
  return report(status, absl::IsInvalidArgument(status) ? 2 : 1);
}

int Program::report(const absl::Status& status, int failed) const {
  if (status.ok()) return 0;
  std::cerr << chosen() << ": " << status.message() << "\n";
  return failed;
}

}  // namespace gleaner::flags
