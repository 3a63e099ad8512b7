// MachineTree: a machine for tests. It writes a /sys and a /proc into a temporary folder, from a file under machines/,
// whose format machines/README.md describes.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "agent/discover/machine.h"

namespace gleaner::discover {

class MachineTree {
 public:
  // Reads machines/NAME.machine. A line that can't be read fails the running test.
  explicit MachineTree(const std::string& name);
  MachineTree();  // an empty machine
  ~MachineTree();
  MachineTree(const MachineTree&) = delete;
  MachineTree& operator=(const MachineTree&) = delete;

  void write(absl::string_view path, absl::string_view content);
  void link(absl::string_view path, absl::string_view target);
  void remove(absl::string_view path);
  MachineSource source() const;
  Tree tree() const { return Tree(root_); }

 private:
  void read_line(absl::string_view line);
  void add_pci(absl::string_view rest);

  std::string root_;
  HwlocSource hwloc_;
};

}  // namespace gleaner::discover
