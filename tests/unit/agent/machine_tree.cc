#include "tests/unit/agent/machine_tree.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/paths.h"

namespace gleaner::discover {
namespace {

std::string file_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string machines_folder() { return absl::StrCat(source_dir(), "/tests/unit/agent/machines/"); }

}  // namespace

MachineTree::MachineTree() {
  std::string pattern = absl::StrCat(testing::TempDir(), "gleaner-machine-XXXXXX");
  root_ = mkdtemp(pattern.data());
  hwloc_.synthetic = "pu:1";
}

MachineTree::MachineTree(const std::string& name) : MachineTree() {
  for (const absl::string_view line :
       absl::StrSplit(file_content(absl::StrCat(machines_folder(), name, ".machine")), '\n')) {
    if (!line.empty() && line[0] != '#') read_line(line);
  }
}

MachineTree::~MachineTree() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void MachineTree::write(absl::string_view path, absl::string_view content) {
  const std::filesystem::path full = absl::StrCat(root_, "/", path);
  std::filesystem::create_directories(full.parent_path());
  std::ofstream(full, std::ios::binary) << content << "\n";
}

void MachineTree::link(absl::string_view path, absl::string_view target) {
  const std::filesystem::path full = absl::StrCat(root_, "/", path);
  std::filesystem::create_directories(full.parent_path());
  std::filesystem::create_symlink(std::string(target), full);
}

void MachineTree::remove(absl::string_view path) { std::filesystem::remove_all(absl::StrCat(root_, "/", path)); }

MachineSource MachineTree::source() const { return {tree(), hwloc_, ""}; }

// Reads a line "pci PATH/OF/BRIDGES/DEVICE key=value...".
void MachineTree::add_pci(absl::string_view rest) {
  const std::vector<absl::string_view> words = absl::StrSplit(rest, ' ', absl::SkipEmpty());
  const std::vector<std::string> chain = absl::StrSplit(words.at(0), '/');
  absl::flat_hash_map<std::string, std::string> keys;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(words[i], absl::MaxSplits('=', 1));
    keys.insert(pair);
  }
  const std::string& address = chain.back();
  const std::string folder = absl::StrCat("sys/devices/pci", chain.front().substr(0, 7), "/", words[0]);
  write(absl::StrCat(folder, "/vendor"), keys["vendor"]);
  write(absl::StrCat(folder, "/class"), keys["class"]);
  write(absl::StrCat(folder, "/numa_node"), keys["numa"]);
  link(absl::StrCat("sys/bus/pci/devices/", address), absl::StrCat("../../../../", folder));
  if (keys.contains("driver")) {
    const std::string driver = absl::StrCat("sys/bus/pci/drivers/", keys["driver"]);
    write(absl::StrCat(driver, "/uevent"), "");
    link(absl::StrCat(folder, "/driver"), absl::StrCat(root_, "/", driver));
  }
  if (keys.contains("net")) {
    const std::string net = absl::StrCat(folder, "/net/", keys["net"]);
    write(absl::StrCat(net, "/operstate"), keys.contains("state") ? keys["state"] : "up");
    if (keys.contains("speed")) write(absl::StrCat(net, "/speed"), keys["speed"]);
    link(absl::StrCat(net, "/device"), "../..");
    link(absl::StrCat("sys/class/net/", keys["net"]), absl::StrCat(root_, "/", net));
  }
  if (keys.contains("rdma")) {
    const std::string rdma = absl::StrCat(folder, "/infiniband/", keys["rdma"]);
    write(absl::StrCat(rdma, "/ports/1/state"), "4: ACTIVE");
    write(absl::StrCat(rdma, "/ports/1/rate"), absl::StrCat(keys["rate"], " Gb/sec (4X)"));
    link(absl::StrCat(rdma, "/device"), "../..");
    link(absl::StrCat("sys/class/infiniband/", keys["rdma"]), absl::StrCat(root_, "/", rdma));
  }
}

void MachineTree::read_line(absl::string_view line) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
  const std::pair<std::string, std::string> operands = absl::StrSplit(parts.second, absl::MaxSplits(' ', 1));
  if (parts.first == "file") {
    write(operands.first, absl::StrReplaceAll(operands.second, {{"\\n", "\n"}, {"\\t", "\t"}}));
  } else if (parts.first == "link") {
    link(operands.first, operands.second);
  } else if (parts.first == "pci") {
    add_pci(parts.second);
  } else if (parts.first == "hwloc") {
    hwloc_.synthetic = parts.second;
  } else if (parts.first == "hwloc-xml") {
    hwloc_.xml = file_content(absl::StrCat(machines_folder(), parts.second));
  } else {
    ADD_FAILURE() << "no such line in a machine: " << line;
  }
}

}  // namespace gleaner::discover
