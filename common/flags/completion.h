// Scripts by which shells complete a program's commands, flags and their values.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace CLI {
class App;
}

namespace gleaner::flags {

// `shell`: bash, zsh or fish. A positional argument named JOB is completed by `jobs`, a shell command that prints one a
// line; empty: it is not.
std::string completion_script(const CLI::App& app, absl::string_view shell, absl::string_view jobs = "");

}  // namespace gleaner::flags
