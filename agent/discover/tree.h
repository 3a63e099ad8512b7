// Tree reads the files of a machine under one root: "/" for this machine, /host in a container that mounts the
// machine's /proc and /sys there, a temporary folder in tests.
//
// Paths are relative to the root: "sys/class/net/eth0/speed". A file that can't be read counts as absent; sysfs, for
// example, refuses a link's speed while the link is down. Thread safe, since the root is the only state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gleaner::discover {

class Tree {
 public:
  explicit Tree(std::string root);

  // Returns the first 256 KiB of a file, without surrounding white space.
  std::optional<std::string> read(absl::string_view path) const;
  std::optional<double> read_number(absl::string_view path) const;  // decimal or 0x...
  std::vector<std::string> list(absl::string_view folder) const;    // sorted names, with hidden files
  bool exists(absl::string_view path) const;
  // Follows all links and returns the path relative to the root; empty if it does not exist or leads outside the root.
  std::string real_path(absl::string_view path) const;
  const std::string& root() const { return root_; }

 private:
  std::string full(absl::string_view path) const;

  std::string root_;  // links followed, without a final slash
};

// Returns "c" for "a/b/c".
absl::string_view last_part(absl::string_view path);

}  // namespace gleaner::discover
