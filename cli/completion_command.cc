// gleaner completion bash|zsh|fish: a script that completes commands, flags and names of jobs, of all programs.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/commands.h"
#include "common/flags/completion.h"

namespace gleaner::cli {
namespace {

// The other programs, where they are installed, print their own.
constexpr char kOthersInBash[] =
    "for program in gleaner-summer gleaner-agent gleaner-operator gleaner-scheduler-ext; do\n"
    "  if command -v $program >/dev/null; then source <($program --completion bash 2>/dev/null); fi\n"
    "done\n";
constexpr char kOthersInFish[] =
    "for program in gleaner-summer gleaner-agent gleaner-operator gleaner-scheduler-ext\n"
    "  if command -q $program\n    $program --completion fish 2>/dev/null | source\n  end\n"
    "end\n";

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes commands, flags and jobs");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell, &context] {
    context.command = "completion";
    context.run = [&app, shell] {
      const std::string script = flags::completion_script(app, *shell, "gleaner status -o name 2>/dev/null");
      return print(absl::StrCat(script, *shell == "fish" ? kOthersInFish : kOthersInBash));
    };
  });
}

}  // namespace gleaner::cli
