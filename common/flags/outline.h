// A plain description of a command line. Completion scripts and error messages are made from it.
#pragma once

#include <string>
#include <vector>

namespace gleaner::flags {

struct FlagOutline {
  std::string name;                // the name in the parser's errors: "--output"; "JOB" if it is positional
  std::vector<std::string> names;  // "--output" and "-o"; long ones first; empty: a positional argument
  std::vector<std::string> words;  // the values that the flag accepts; empty: any value
  std::string variable;            // the environment variable that may give its value; empty: none
  bool is_old_name = false;        // accepted, but neither suggested nor completed
};

struct CommandOutline {
  std::string name;  // "sum"
  std::string path;  // "gleaner bench sum"
  std::string help;
  std::vector<FlagOutline> flags;  // in the order in which they were added, with positional arguments
  std::vector<CommandOutline> commands;
};

}  // namespace gleaner::flags
