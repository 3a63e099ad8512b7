#include "common/flags/completion.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace gleaner::flags {
namespace {

// The words that a flag may have as its value.
struct Value {
  std::vector<std::string> flags;  // the flag's names
  std::vector<std::string> words;
};

// A command, or the program itself.
struct CompletedCommand {
  std::string path;  // " bench sum", for example; empty: the program
  std::string name, help;
  std::vector<std::string> words;  // its flags and commands
  std::vector<Value> values;
  bool takes_job = false;
  bool runs_command = false;  // the words after -- are another command line
};

void add_commands(const CommandOutline& outline, const std::string& path, std::vector<CompletedCommand>& commands) {
  CompletedCommand command{path, outline.name, outline.help, {}, {}, false, false};
  for (const CommandOutline& inner : outline.commands) command.words.push_back(inner.name);
  for (const FlagOutline& flag : outline.flags) {
    if (flag.is_old_name) continue;
    const std::vector<std::string>& words = flag.names.empty() ? flag.words : flag.names;
    command.words.insert(command.words.end(), words.begin(), words.end());
    command.takes_job |= flag.name == "JOB";
    command.runs_command |= flag.name == "COMMAND";
    if (!flag.names.empty() && !flag.words.empty()) command.values.push_back({flag.names, flag.words});
  }
  commands.push_back(std::move(command));
  for (const CommandOutline& inner : outline.commands) {
    add_commands(inner, absl::StrCat(path, " ", inner.name), commands);
  }
}

std::string bash(const std::vector<CompletedCommand>& commands, const std::string& jobs) {
  const std::string& program = commands.front().name;
  std::string paths, values, words;
  for (const CompletedCommand& command : commands) {
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

std::string fish(const std::vector<CompletedCommand>& commands, const std::string& jobs) {
  const std::string& program = commands.front().name;
  const bool has_commands = commands.size() > 1;
  std::string text;
  for (const CompletedCommand& command : commands) {
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

std::string completion_script(const CommandOutline& program, absl::string_view shell, absl::string_view jobs) {
  std::vector<CompletedCommand> commands;
  add_commands(program, "", commands);
  if (shell == "fish") return fish(commands, std::string(jobs));
  const std::string head =
      shell == "zsh" ? absl::StrCat("#compdef ", program.name,
                                    "\n(( $+functions[compdef] )) || { autoload -U compinit && compinit -D }\n"
                                    "autoload -U +X bashcompinit && bashcompinit\n")
                     : "";
  return absl::StrCat(head, bash(commands, std::string(jobs)));
}

}  // namespace gleaner::flags
