#include "common/transport/rdma/nearness.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gleaner::transport::rdma {
namespace {

constexpr int kMostCores = 1 << 16;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<int> numbers_in(absl::string_view list) {
  std::vector<int> numbers;
  for (const absl::string_view part : absl::StrSplit(absl::StripAsciiWhitespace(list), ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0;
    int last = 0;
    if (!absl::SimpleAtoi(ends.front(), &first) || !absl::SimpleAtoi(ends.back(), &last) || first < 0 ||
        last >= kMostCores) {
      continue;
    }
    for (int i = first; i <= last; ++i) numbers.push_back(i);
  }
  return numbers;
}

Nodes Nodes::read(const std::string& root) {
  Nodes nodes;
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(root) / "sys/devices/system/node";
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    absl::string_view number = name;
    int node = 0;
    if (!absl::ConsumePrefix(&number, "node") || !absl::SimpleAtoi(number, &node)) continue;
    nodes.cores[node] = numbers_in(text_of(entry.path() / "cpulist"));
    for (const absl::string_view one :
         absl::StrSplit(text_of(entry.path() / "distance"), ' ', absl::SkipWhitespace())) {
      int distance = 0;
      if (absl::SimpleAtoi(one, &distance)) nodes.distances[node].push_back(distance);
    }
  }
  return nodes;
}

std::vector<int> Nodes::with(const std::vector<int>& wanted) const {
  std::vector<int> found;
  for (const auto& [node, has] : cores) {
    const auto is_wanted = [&](int core) { return std::find(wanted.begin(), wanted.end(), core) != wanted.end(); };
    if (std::any_of(has.begin(), has.end(), is_wanted)) found.push_back(node);
  }
  return found;
}

double Nodes::cost(int from, int to) const {
  const auto row = distances.find(from);
  if (from == to || row == distances.end()) return 1;
  const auto place = [&](int node) {
    return static_cast<size_t>(std::distance(distances.begin(), distances.find(node)));
  };
  const size_t there = place(to);
  const size_t here = place(from);
  if (there >= row->second.size() || here >= row->second.size() || row->second[here] <= 0) return 1;
  return static_cast<double>(row->second[there]) / row->second[here];
}

absl::StatusOr<int> node_of(absl::string_view name, const std::string& root) {
  namespace fs = std::filesystem;
  const fs::path system = fs::path(root) / "sys";
  std::error_code ignored;
  int node = 0;
  if (absl::SimpleAtoi(name, &node)) {
    if (fs::exists(system / absl::StrCat("devices/system/node/node", node), ignored)) return node;
    return absl::NotFoundError(absl::StrCat("this machine has no NUMA node ", node, "; see `lscpu`"));
  }
  static const std::regex address("([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]");
  std::string device = absl::AsciiStrToLower(name);
  if (!std::regex_match(device, address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "': expected the number of a NUMA node, or a PCI address such as 0000:3b:00.0"));
  }
  if (std::count(device.begin(), device.end(), ':') == 1) device = absl::StrCat("0000:", device);
  // The kernel writes four digits before the first colon; a GPU's own tools write eight.
  while (device.find(':') > 4 && device.front() == '0') device.erase(0, 1);
  const fs::path folder = system / "bus/pci/devices" / device;
  if (!fs::exists(folder, ignored)) {
    return absl::NotFoundError(absl::StrCat("this machine has no PCI device ", device, "; see `lspci -D`"));
  }
  return absl::SimpleAtoi(absl::StripAsciiWhitespace(text_of(folder / "numa_node")), &node) ? std::max(node, -1) : -1;
}

std::vector<int> own_cores() {
  std::vector<int> cores;
  // The kernel refuses a set that is smaller than its own, so the loop tries larger ones.
  for (int size = CPU_SETSIZE; size <= kMostCores; size *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<size_t>(size)),
                                                               [](cpu_set_t* one) { CPU_FREE(one); });
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(size));
    if (sched_getaffinity(0, bytes, set.get()) != 0) continue;
    for (int i = 0; i < size; ++i) {
      if (CPU_ISSET_S(static_cast<size_t>(i), bytes, set.get())) cores.push_back(i);
    }
    break;
  }
  return cores;
}

std::vector<double> costs_of(const std::vector<int>& port_nodes, const std::vector<int>& our_nodes,
                             const Nodes& nodes) {
  std::vector<double> costs;
  for (const int node : port_nodes) {
    double least = our_nodes.empty() || node < 0 ? 1 : nodes.cost(our_nodes.front(), node);
    for (const int ours : our_nodes) least = node < 0 ? 1 : std::min(least, nodes.cost(ours, node));
    costs.push_back(least);
  }
  return costs;
}

std::vector<uint64_t> usable_bandwidths(const std::vector<uint64_t>& bits_per_second, const std::vector<double>& costs,
                                        bool nearest_only) {
  std::vector<uint64_t> worth = bits_per_second;
  const double least = costs.empty() ? 1 : *std::min_element(costs.begin(), costs.end());
  for (size_t i = 0; i < worth.size(); ++i) {
    if (costs[i] == least) continue;
    worth[i] = nearest_only ? 0 : static_cast<uint64_t>(static_cast<double>(worth[i]) * least / costs[i]);
  }
  return worth;
}

}  // namespace gleaner::transport::rdma
