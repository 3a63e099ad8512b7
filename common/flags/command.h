// Classes with which a program declares its command line: its commands, and the flags and positional arguments of each.
// All programs of Gleaner use them, so all programs behave alike: an error names the mistake and suggests the flag that
// the user probably meant, numbers are finite, and a program without commands has --completion.
//
//   std::string listen = "127.0.0.1:0";
//   flags::Program program("echo", "Sends back what it receives", "1.0");
//   program.add_text("--listen", listen, "HOST:PORT").show_default().environment("ECHO_LISTEN");
//   if (const std::optional<int> status = program.parse(argc, argv)) return *status;
//
// The first argument of each add_ function names a flag: "--listen", or "-l,--listen" for a flag with two names. A name
// without dashes, such as "JOB", is a positional argument. parse() sets the target, which must outlive it. The target
// keeps its value if the flag is not given. A wrong declaration, such as a name that exists already, ends the program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/flags/outline.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace gleaner::flags {

// A flag or positional argument. Its functions refine the declaration. The object refers to the declaration in its
// Program, and must not outlive the Program.
class Flag {
 public:
  explicit Flag(CLI::Option& option) : option_(&option) {}

  Flag& required();
  Flag& show_default();  // help shows the value that the target has now
  // Takes the value of this environment variable if the flag is not given.
  Flag& environment(const std::string& variable);
  // Accepts only these values.
  Flag& one_of(const std::vector<std::string>& words);
  // Accepts only these values, in letters of any case. The target gets the value as it is in `words`.
  Flag& one_of_any_case(const std::vector<std::string>& words);
  // Sets inclusive limits. Help shows the type of the limits, so there is one function per type.
  Flag& between(int least, int most) { return between(int64_t{least}, int64_t{most}); }
  Flag& between(int64_t least, int64_t most);
  Flag& between(uint64_t least, uint64_t most);
  Flag& between(double least, double most);
  Flag& positive();  // above 0
  // Accepts only HOST:PORT as Address::parse() does (common/base/address.h).
  Flag& address();
  Flag& peer_address();      // an address to connect to, so the port is above 0
  Flag& optional_address();  // may also be empty: no address
  // Accepts only names that pass check_name() (common/base/names.h).
  Flag& name();
  Flag& optional_name();  // may also be empty: no name

 private:
  CLI::Option* option_;
};

// A command. The object refers to the declaration in its Program, and must not outlive the Program.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  Flag add_text(const std::string& names, std::string& target, const std::string& help);
  Flag add_texts(const std::string& names, std::vector<std::string>& target, const std::string& help);
  Flag add_number(const std::string& names, double& target, const std::string& help);
  Flag add_number(const std::string& names, int& target, const std::string& help);
  Flag add_number(const std::string& names, int64_t& target, const std::string& help);
  Flag add_number(const std::string& names, uint32_t& target, const std::string& help);
  Flag add_number(const std::string& names, uint64_t& target, const std::string& help);
  Flag add_switch(const std::string& names, bool& target, const std::string& help);  // adds a flag without a value
  // Adds an earlier name of a text or number, which help and completion do not show.
  void add_old_name(const std::string& flag, const std::string& old_name);

  Command add_command(const std::string& name, const std::string& help);
  void require_command();  // the user must choose one of the commands
  // All words after the first positional argument are positional, with or without dashes.
  void end_flags_at_first_positional();
  void add_footer(const std::string& text);  // help ends with this text
  // Returns whether the parsed command line has this flag. A value from the environment does not count.
  bool has_on_command_line(const std::string& flag) const;
  void on_chosen(std::function<void()> action);  // parse() calls `action` if the user chose this command

  CommandOutline outline() const;

 private:
  CLI::App* app_;
};

// The command line of a whole program. Without add_command() the program itself is its only command.
class Program : public Command {
 public:
  // `version` empty: there is no flag --version.
  Program(const std::string& name, const std::string& help, const std::string& version);
  ~Program();

  // Parses the command line, sets the targets, and runs the actions of the chosen commands. Returns nothing if the
  // program is to go on, else its exit status. The status is 0 after --help, --version and --completion, whose text
  // parse() prints (1 if the completion script can't be written), and 2 after an error in the command line, which
  // parse() prints to standard error. May be called again.
  std::optional<int> parse(int argc, const char* const* argv);
  // Returns the path of the innermost command of the command line that was parsed last.
  std::string chosen() const;

  // Returns the exit status of a program that ends with `status`: 0 if that is OK. Otherwise prints the error to
  // standard error, after the path of chosen(), and returns `failed`. Without `failed` it returns 2 for InvalidArgument
  // and 1 for other errors.
  int report(const absl::Status& status) const;
  int report(const absl::Status& status, int failed) const;

 private:
  explicit Program(std::unique_ptr<CLI::App> app);
  // Return the exit status.
  int print_completion() const;
  int end_output() const;  // flushes standard output, and reports an error of it

  std::unique_ptr<CLI::App> app_;
  std::string completion_;  // the value of --completion; empty: not given
};

}  // namespace gleaner::flags
