// The files of a machine under one root: "/" for this machine, /host where a container has the machine's /proc and
// /sys, a temporary folder in tests.
//
// Paths are inside the root and begin without it: "sys/class/net/eth0/speed". What is missing or can't be read (sysfs
// refuses a link's speed while the link is down) is simply not there. Thread safe: holds no state but the root.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gleaner::discover {

class Tree {
 public:
  explicit Tree(std::string root);

  // Without surrounding white space; the first 256 KiB.
  std::optional<std::string> read(absl::string_view path) const;
  std::optional<double> read_number(absl::string_view path) const;  // decimal or 0x...
  std::vector<std::string> list(absl::string_view folder) const;    // names, sorted; hidden ones too
  bool exists(absl::string_view path) const;
  // Where the path leads when all links are followed, inside the root again; empty: nowhere.
  std::string real_path(absl::string_view path) const;
  const std::string& root() const { return root_; }

 private:
  std::string full(absl::string_view path) const;

  std::string root_;  // without a slash at its end, links followed
};

// "c" of "a/b/c".
absl::string_view last_part(absl::string_view path);

}  // namespace gleaner::discover
