// gleaner completion bash|zsh|fish: prints a script that completes commands, flags and names of jobs for all programs
// of Gleaner.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "common/flags/completion.h"

namespace gleaner::cli {
namespace {

// These lines load the completion of the other programs, as far as they are installed, from the programs themselves.
constexpr char kOthersInBash[] =
    "for program in gleaner-summer gleaner-agent gleaner-operator gleaner-scheduler-ext; do\n"
    "  if command -v $program >/dev/null; then source <($program --completion bash 2>/dev/null); fi\n"
    "done\n";
constexpr char kOthersInFish[] =
    "for program in gleaner-summer gleaner-agent gleaner-operator gleaner-scheduler-ext\n"
    "  if command -q $program\n    $program --completion fish 2>/dev/null | source\n  end\n"
    "end\n";

}  // namespace

void add_completion(flags::Command& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  flags::Command command = app.add_command("completion", "Print a script that completes commands, flags and jobs");
  command.add_text("SHELL", *shell, "bash, zsh or fish").required().one_of({"bash", "zsh", "fish"});
  command.on_chosen([&app, shell, &context] {
    context.run = [&app, shell] {
      flags::CommandOutline outline = app.outline();
      outline.name = "gleaner";  // a shell completes a program, which `kubectl gleaner` is not
      const std::string script = flags::completion_script(outline, *shell, "gleaner status -o name 2>/dev/null");
      return print(absl::StrCat(script, *shell == "fish" ? kOthersInFish : kOthersInBash));
    };
  });
}

}  // namespace gleaner::cli
