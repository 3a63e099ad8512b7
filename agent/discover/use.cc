#include "agent/discover/use.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gleaner::discover {
namespace {

constexpr int kMostCgroupLevels = 6;  // kubelet.slice/kubelet-kubepods.slice/...-burstable.slice/...-podUID.slice

bool unified(const Tree& tree) { return tree.exists("sys/fs/cgroup/cgroup.controllers"); }

// Returns the folder of a controller's cgroups: "sys/fs/cgroup" (v2) or, for example, "sys/fs/cgroup/memory" (v1).
std::string hierarchy(const Tree& tree, absl::string_view controller) {
  if (unified(tree)) return "sys/fs/cgroup";
  // cpuacct is mounted alone or together with cpu.
  for (const char* name : {"cpu,cpuacct", "cpuacct,cpu"}) {
    if (controller == "cpuacct" && tree.exists(absl::StrCat("sys/fs/cgroup/", name))) {
      return absl::StrCat("sys/fs/cgroup/", name);
    }
  }
  return absl::StrCat("sys/fs/cgroup/", controller);
}

// Returns the value on the line of `text` that begins with `key`.
std::optional<double> value_of(const std::string& text, absl::string_view key) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    double value = 0;
    if (words.size() >= 2 && words[0] == key && absl::SimpleAtod(words[1], &value)) return value;
  }
  return std::nullopt;
}

std::optional<double> cgroup_cpu_seconds(const Tree& tree, const std::string& folder) {
  if (const std::optional<double> nanoseconds = tree.read_number(absl::StrCat(folder, "/cpuacct.usage"))) {
    return *nanoseconds * 1e-9;
  }
  const std::optional<double> microseconds =
      value_of(tree.read(absl::StrCat(folder, "/cpu.stat")).value_or(""), "usage_usec");
  if (!microseconds.has_value()) return std::nullopt;
  return *microseconds * 1e-6;
}

// The line is "cpu  user nice system idle iowait irq softirq steal guest guest_nice", in ticks. user and nice include
// guest and guest_nice.
std::optional<double> machine_cpu_seconds(const Tree& tree) {
  const std::string text = tree.read("proc/stat").value_or("");
  const std::vector<absl::string_view> words =
      absl::StrSplit(absl::string_view(text).substr(0, text.find('\n')), ' ', absl::SkipEmpty());
  if (words.size() < 8 || words[0] != "cpu") return std::nullopt;
  double ticks = 0;
  for (const size_t i : {1, 2, 3, 6, 7}) {
    double value = 0;
    if (!absl::SimpleAtod(words[i], &value)) return std::nullopt;
    ticks += value;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Returns whether `text` contains the pod's uid as cgroup drivers write it: with dashes (cgroupfs) or underscores
// (systemd).
bool names_pod(absl::string_view text, const std::string& uid) {
  return absl::StrContains(text, absl::StrCat("pod", uid)) ||
         absl::StrContains(text, absl::StrCat("pod", absl::StrReplaceAll(uid, {{"-", "_"}})));
}

// Returns the pod's folder below `folder`; empty if there is none. Searches only folders that the kubelet makes.
std::string find_cgroup(const Tree& tree, const std::string& folder, const std::string& uid, int levels) {
  std::vector<std::string> deeper;
  for (const std::string& name : tree.list(folder)) {
    if (names_pod(name, uid)) return absl::StrCat(folder, "/", name);
    const bool made_by_kubelet = absl::StrContains(name, "kubepods") || absl::StartsWith(name, "kubelet") ||
                                 name == "burstable" || name == "besteffort" || name == "guaranteed";
    if (made_by_kubelet && !absl::StrContains(name, "-pod")) deeper.push_back(absl::StrCat(folder, "/", name));
  }
  for (const std::string& next : deeper) {
    if (levels == 0) break;
    std::string found = find_cgroup(tree, next, uid, levels - 1);
    if (!found.empty()) return found;
  }
  return "";
}

// /proc/PID/net/dev has two lines of heading, then lines such as "eth0: received-bytes (seven more) sent-bytes ...".
std::optional<Traffic> read_process_traffic(const Tree& tree, const std::string& process) {
  const std::optional<std::string> text = tree.read(absl::StrCat(process, "/net/dev"));
  if (!text.has_value()) return std::nullopt;
  Traffic total;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::vector<absl::string_view> sides = absl::StrSplit(line, ':');
    if (sides.size() != 2 || absl::StripAsciiWhitespace(sides[0]) == "lo") continue;
    const std::vector<absl::string_view> words = absl::StrSplit(sides[1], ' ', absl::SkipEmpty());
    double received = 0, sent = 0;
    if (words.size() < 9 || !absl::SimpleAtod(words[0], &received) || !absl::SimpleAtod(words[8], &sent)) continue;
    total.received_bytes += received;
    total.sent_bytes += sent;
  }
  return total;
}

}  // namespace

std::string cgroup_root_of(absl::string_view cgroups) {
  for (const absl::string_view line : absl::StrSplit(cgroups, '\n')) {
    // Such as 4:memory:/nodes/n1/kubepods/burstable/pod.../...
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || absl::StrContains(parts[2], "/..")) continue;
    const size_t end = std::min(parts[2].find("/kubepods"), parts[2].find("/kubelet"));
    if (end != absl::string_view::npos && end > 0) return std::string(parts[2].substr(0, end));
  }
  return "/";
}

std::optional<double> read_cpu_seconds(const Tree& tree, absl::string_view cgroup_root) {
  absl::ConsumePrefix(&cgroup_root, "/");
  const std::string folder = absl::StrCat(hierarchy(tree, "cpuacct"), cgroup_root.empty() ? "" : "/", cgroup_root);
  const std::optional<double> seconds = cgroup_cpu_seconds(tree, folder);
  return seconds.has_value() ? seconds : machine_cpu_seconds(tree);
}

std::optional<double> read_cpu_pressure(const Tree& tree) {
  const std::string text = tree.read("proc/pressure/cpu").value_or("");
  for (const absl::string_view word : absl::StrSplit(text.substr(0, text.find('\n')), ' ')) {
    absl::string_view number = word;
    double percent = 0;
    if (absl::ConsumePrefix(&number, "avg10=") && absl::SimpleAtod(number, &percent)) return percent;
  }
  return std::nullopt;
}

std::optional<double> read_available_memory(const Tree& tree) {
  const std::optional<double> kibibytes = value_of(tree.read("proc/meminfo").value_or(""), "MemAvailable:");
  if (!kibibytes.has_value()) return std::nullopt;
  return *kibibytes * 1024;
}

PodFinder::PodFinder(Tree tree, absl::string_view cgroup_root)
    : tree_(std::move(tree)), cgroup_root_(absl::StripPrefix(cgroup_root, "/")) {}

bool PodFinder::process_is_of(const PodPaths& paths, const std::string& uid) const {
  return !paths.process.empty() && names_pod(tree_.read(absl::StrCat(paths.process, "/cgroup")).value_or(""), uid);
}

// Finds a process of each pod, since a pod's network namespace can be reached only through its processes.
void PodFinder::find_processes() {
  for (const std::string& name : tree_.list("proc")) {
    if (!absl::ascii_isdigit(name[0])) continue;
    const std::string process = absl::StrCat("proc/", name);
    const std::string cgroup = tree_.read(absl::StrCat(process, "/cgroup")).value_or("");
    if (!absl::StrContains(cgroup, "pod")) continue;
    for (auto& [uid, paths] : paths_) {
      if (paths.process.empty() && names_pod(cgroup, uid)) paths.process = process;
    }
  }
}

std::vector<PodUse> PodFinder::read(const std::vector<std::string>& uids, const std::vector<bool>& own_network) {
  for (auto paths = paths_.begin(); paths != paths_.end();) {
    const bool gone = std::find(uids.begin(), uids.end(), paths->first) == uids.end();
    paths = gone ? paths_.erase(paths) : std::next(paths);
  }
  bool look_for_processes = false;
  for (size_t i = 0; i < uids.size(); ++i) {
    PodPaths& paths = paths_[uids[i]];
    for (const auto& [controller, folder] :
         {std::pair{"cpuacct", &paths.cpu_folder}, std::pair{"memory", &paths.memory_folder}}) {
      if (!folder->empty() && tree_.exists(*folder)) continue;
      const std::string top = absl::StrCat(hierarchy(tree_, controller), cgroup_root_.empty() ? "" : "/", cgroup_root_);
      *folder = find_cgroup(tree_, top, uids[i], kMostCgroupLevels);
    }
    if (own_network[i] && !process_is_of(paths, uids[i])) {
      paths.process.clear();
      look_for_processes = true;
    }
  }
  if (look_for_processes) find_processes();

  std::vector<PodUse> uses;
  for (size_t i = 0; i < uids.size(); ++i) {
    const PodPaths& paths = paths_[uids[i]];
    PodUse use;
    if (!paths.cpu_folder.empty()) use.cpu_seconds = cgroup_cpu_seconds(tree_, paths.cpu_folder);
    if (!paths.memory_folder.empty()) {
      const std::optional<double> v2 = tree_.read_number(absl::StrCat(paths.memory_folder, "/memory.current"));
      use.memory_bytes =
          v2.has_value() ? *v2
                         : tree_.read_number(absl::StrCat(paths.memory_folder, "/memory.usage_in_bytes")).value_or(0);
    }
    if (!paths.process.empty()) use.traffic = read_process_traffic(tree_, paths.process);
    uses.push_back(use);
  }
  return uses;
}

}  // namespace gleaner::discover
