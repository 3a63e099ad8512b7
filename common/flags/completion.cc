#include "common/flags/completion.h"

#include <CLI/CLI.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace gleaner::flags {
namespace {

struct Value {
  std::vector<std::string> flags;  // that take one of
  std::vector<std::string> words;
};

// A command, or the program itself.
struct Command {
  std::string path;  // " bench sum"; empty: the program
  std::string name, help;
  std::vector<std::string> words;  // its flags and commands
  std::vector<Value> values;
  bool takes_job = false;
  bool runs_command = false;  // what comes after -- is a command line of its own
};

// The words of a check like CLI::IsMember, which shows in the name of the option's type: "TEXT:{json,table}".
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{'), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return absl::StrSplit(type.substr(begin + 1, end - begin - 1), ',', absl::SkipEmpty());
}

void add_commands(const CLI::App& app, const std::string& path, std::vector<Command>& commands) {
  Command command{path, app.get_name(), app.get_description(), {}, {}, false, false};
  const auto inner = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* each : inner) command.words.push_back(each->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // an old spelling
    std::vector<std::string> names;
    for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
    for (const std::string& name : option->get_snames()) names.push_back(absl::StrCat("-", name));
    std::vector<std::string> words = words_of(*option);
    command.words.insert(command.words.end(), names.begin(), names.end());
    if (names.empty()) command.words.insert(command.words.end(), words.begin(), words.end());
    command.takes_job |= option->get_name() == "JOB";
    command.runs_command |= option->get_name() == "COMMAND";
    if (!names.empty() && !words.empty()) command.values.push_back({std::move(names), std::move(words)});
  }
  commands.push_back(std::move(command));
  for (const CLI::App* each : inner) add_commands(*each, absl::StrCat(path, " ", each->get_name()), commands);
}

std::string bash(const std::vector<Command>& commands, const std::string& jobs) {
  const std::string& program = commands.front().name;
  std::string paths, values, words;
  for (const Command& command : commands) {
    if (!command.path.empty()) absl::StrAppend(&paths, "      '", command.path, "') path='", command.path, "' ;;\n");
    for (const Value& value : command.values) {
      std::vector<std::string> patterns;
      for (const std::string& flag : value.flags) patterns.push_back(absl::StrCat("'", command.path, " ", flag, "'"));
      absl::StrAppend(&values, "    ", absl::StrJoin(patterns, "|"), ") words='", absl::StrJoin(value.words, " "),
                      "' ;;\n");
    }
    absl::StrAppend(&words, "    '", command.path, "') words='", absl::StrJoin(command.words, " "), "'");
    if (command.takes_job && !jobs.empty()) {
      absl::StrAppend(&words, "; [[ $current == -* ]] || words+=\" $(", jobs, ")\"");
    }
    absl::StrAppend(&words, " ;;\n");
  }
  const std::string function = absl::StrCat("_", absl::StrReplaceAll(program, {{"-", "_"}}));
  return absl::StrCat(
      function,
      "() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} path='' words='' i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
      "      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); fi\n"
      "      return\n"
      "    fi\n"
      "    case \"$path ${COMP_WORDS[i]}\" in\n",
      paths,
      "    esac\n"
      "  done\n"
      "  case \"$path $previous\" in\n",
      values,
      "    *)\n"
      "    case $path in\n",
      words,
      "    esac ;;\n"
      "  esac\n"
      "  # shellcheck disable=SC2207\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}\n"
      "complete -o default -F ",
      function, " ", program, "\n");
}

std::string in_quotes(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "\\'"}}), "'");
}

std::string fish(const std::vector<Command>& commands, const std::string& jobs) {
  const std::string& program = commands.front().name;
  const bool has_commands = commands.size() > 1;
  std::string text;
  for (const Command& command : commands) {
    const bool is_program = command.path.empty();
    std::string here = absl::StrCat("complete -c ", program);
    if (has_commands && is_program) here += " -n __fish_use_subcommand";
    if (!is_program) absl::StrAppend(&here, " -n '__fish_seen_subcommand_from ", command.name, "'");
    if (!is_program) {
      absl::StrAppend(&text, "complete -c ", program, " -n __fish_use_subcommand -a ", command.name, " -d ",
                      in_quotes(command.help), "\n");
    }
    absl::StrAppend(&text, here, " -a ", in_quotes(absl::StrJoin(command.words, " ")), "\n");
    for (const Value& value : command.values) {
      for (const std::string& flag : value.flags) {
        const bool is_long = flag.size() > 2;
        absl::StrAppend(&text, here, is_long ? " -l " : " -s ", flag.substr(is_long ? 2 : 1), " -x -a ",
                        in_quotes(absl::StrJoin(value.words, " ")), "\n");
      }
    }
    if (command.takes_job && !jobs.empty()) absl::StrAppend(&text, here, " -a '(", jobs, ")'\n");
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, absl::string_view shell, absl::string_view jobs) {
  std::vector<Command> commands;
  add_commands(app, "", commands);
  if (shell == "fish") return fish(commands, std::string(jobs));
  const std::string head =
      shell == "zsh" ? absl::StrCat("#compdef ", app.get_name(),
                                    "\n(( $+functions[compdef] )) || { autoload -U compinit && compinit -D }\n"
                                    "autoload -U +X bashcompinit && bashcompinit\n")
                     : "";
  return absl::StrCat(head, bash(commands, std::string(jobs)));
}

}  // namespace gleaner::flags
