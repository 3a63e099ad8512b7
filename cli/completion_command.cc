// gleaner completion bash|zsh|fish: a script that completes commands, flags and names of jobs.
#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "cli/cluster/access.h"
#include "cli/commands.h"

namespace gleaner::cli {
namespace {

struct Command {
  std::string name, help;
  std::vector<std::string> words;  // its flags and its own subcommands
  bool takes_job = false;
};

std::vector<Command> commands_of(CLI::App& app) {
  std::vector<Command> commands;
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    Command found{command->get_name(), command->get_description(), {}, false};
    for (const CLI::App* inner : command->get_subcommands([](const CLI::App*) { return true; })) {
      found.words.push_back(inner->get_name());
    }
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) found.words.push_back(absl::StrCat("--", name));
      for (const std::string& name : option->get_snames()) found.words.push_back(absl::StrCat("-", name));
      found.takes_job = found.takes_job || option->get_name() == "JOB";
    }
    commands.push_back(std::move(found));
  }
  return commands;
}

std::string bash(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  std::string cases;
  for (const Command& command : commands) {
    names.push_back(command.name);
    absl::StrAppend(
        &cases, "    ", command.name, ") words=\"", absl::StrJoin(command.words, " "), "\"",
        command.takes_job ? "; [[ $current == -* ]] || words+=\" $(gleaner status -o name 2>/dev/null)\"" : "",
        " ;;\n");
  }
  return absl::StrCat(
      "_gleaner() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} words\n"
      "  case $COMP_CWORD:${COMP_WORDS[1]} in 1:*) set -- '' ;; *) set -- \"${COMP_WORDS[1]}\" ;; esac\n"
      "  case $1 in\n"
      "    '') words=\"",
      absl::StrJoin(names, " "), " --help --version\" ;;\n", cases,
      "  esac\n"
      "  # shellcheck disable=SC2207\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
      "}\n"
      "complete -o default -F _gleaner gleaner\n");
}

std::string fish(const std::vector<Command>& commands) {
  std::string text = "complete -c gleaner -f\n";
  for (const Command& command : commands) {
    const std::string help = absl::StrReplaceAll(command.help, {{"'", "\\'"}});
    absl::StrAppend(&text, "complete -c gleaner -n __fish_use_subcommand -a ", command.name, " -d '", help, "'\n");
    const std::string here = absl::StrCat("complete -c gleaner -n '__fish_seen_subcommand_from ", command.name, "' ");
    absl::StrAppend(&text, here, "-a '", absl::StrJoin(command.words, " "), "'\n");
    if (command.takes_job) absl::StrAppend(&text, here, "-a '(gleaner status -o name 2>/dev/null)'\n");
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands, flags and jobs");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell, &context] {
    context.command = "completion";
    context.run = [&app, shell] {
      const std::vector<Command> commands = commands_of(app);
      if (*shell == "fish") return print(fish(commands));
      const char* head = *shell == "zsh" ? "#compdef gleaner\nautoload -U +X bashcompinit && bashcompinit\n" : "";
      return print(absl::StrCat(head, bash(commands)));
    };
  });
}

}  // namespace gleaner::cli
