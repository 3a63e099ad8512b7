#include "common/machine/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/machine/json.h"

namespace gleaner::machine {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

void add_line(std::string& text, absl::string_view label, absl::string_view content) {
  absl::StrAppend(&text, absl::StrFormat("%-12s", label), content, "\n");
}

std::string nvlink_words(const Machine& machine) {
  if (machine.nvlink.empty()) return "no NVLink";
  if (machine.nvlink.size() == 1 && machine.nvlink.front().gpus.size() == machine.gpus.size()) {
    return absl::StrCat("NVLink joins all GPUs, ", words_of(machine.nvlink.front().bandwidth), " each");
  }
  std::vector<std::string> groups;
  for (const NvlinkGroup& group : machine.nvlink) {
    groups.push_back(absl::StrCat(counted(group.gpus.size(), "GPU"), " at ", words_of(group.bandwidth)));
  }
  return absl::StrCat("NVLink joins ", absl::StrJoin(groups, ", "));
}

std::string summary_of(const Machine& machine, const Choice& choice) {
  const SwitchCounts& counts = choice.switches;
  const bool is_mig = std::all_of(machine.gpus.begin(), machine.gpus.end(), [](const Gpu& gpu) { return gpu.is_mig; });
  std::string text = absl::StrCat(counted(machine.gpus.size(), "GPU"), is_mig ? " in MIG mode, " : ", ");
  absl::StrAppend(&text, counted(counts.with_nic + counts.without_nic, "PCIe switch", "PCIe switches"), " with GPUs");
  if (counts.with_nic + counts.without_nic > 0) {
    absl::StrAppend(&text, " (", counts.with_nic, " with a NIC, ", counts.without_nic, " without)");
  }
  absl::StrAppend(&text, ", ", counted(machine.nics.size(), "NIC"), " for gradients; ", nvlink_words(machine));
  return text;
}

template <class Device>
void add_names(const std::vector<Device>& devices, std::optional<uint32_t> at, int numa_node,
               std::vector<std::string>& row) {
  std::vector<std::string> names;
  for (const Device& device : devices) {
    if (device.at != at || (!at.has_value() && device.numa_node != numa_node)) continue;
    names.push_back(absl::StrCat(device.name, " (", words_of(device.bandwidth), ")"));
  }
  row.push_back(names.empty() ? "-" : absl::StrJoin(names, ", "));
}

std::string node_words(int numa_node) { return numa_node < 0 ? "-" : absl::StrCat(numa_node); }

// Returns a row for each switch, and for each NUMA node with devices at no switch.
std::string switch_table(const Machine& machine) {
  Rows rows = {{"PCIE SWITCH", "NUMA", "TO CPU", "GPUS", "NICS"}};
  for (uint32_t at = 0; at < machine.switches.size(); ++at) {
    const Switch& node = machine.switches[at];
    std::vector<std::string>& row =
        rows.emplace_back(std::vector{node.name, node_words(node.numa_node), words_of(node.bandwidth)});
    add_names(machine.gpus, at, node.numa_node, row);
    add_names(machine.nics, at, node.numa_node, row);
  }
  std::vector<int> nodes;
  for (const Gpu& gpu : machine.gpus) {
    if (!gpu.at) nodes.push_back(gpu.numa_node);
  }
  for (const Nic& nic : machine.nics) {
    if (!nic.at) nodes.push_back(nic.numa_node);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (const int node : nodes) {
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{"none", node_words(node), "-"});
    add_names(machine.gpus, std::nullopt, node, row);
    add_names(machine.nics, std::nullopt, node, row);
  }
  return align(rows, "lrlll");
}

bool is_alike(const Link& a, const Link& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.bandwidth == b.bandwidth;
}

// Returns a row for each kind of links that carry the same.
std::string link_table(const Candidate& candidate) {
  Rows rows = {{"LINK", "ALIKE", "LOAD EACH WAY", "BANDWIDTH", "TIME"}};
  const std::vector<Link>& links = candidate.links;
  for (size_t i = 0; i < links.size(); ++i) {
    const auto is_same = [&](const Link& link) { return is_alike(link, links[i]); };
    if (std::find_if(links.begin(), links.end(), is_same) != links.begin() + static_cast<ptrdiff_t>(i)) continue;
    rows.push_back({name_of(links[i]), absl::StrCat(std::count_if(links.begin(), links.end(), is_same)),
                    format_bytes(links[i].bytes), words_of(links[i].bandwidth),
                    links[i].bandwidth.is_known() ? format_seconds(links[i].seconds()) : "not counted"});
  }
  return align(rows, "lrrrl");
}

std::string way_table(const Choice& choice) {
  Rows rows = {{"WAY", "TIME", "RUNS", "BUSIEST LINK"}};
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.is_possible()) {
      rows.push_back({name_of(candidate.way), format_seconds(candidate.seconds), candidate.runs() ? "yes" : "not yet",
                      name_of(candidate.links[candidate.busiest])});
    } else {
      rows.push_back({name_of(candidate.way), "-", "-", absl::StrCat("impossible: ", candidate.impossible)});
    }
  }
  return align(rows, "lrll");
}

std::string time_words(const Candidate& candidate) {
  return absl::StrCat(format_seconds(candidate.seconds), "; the busiest link is ",
                      name_of(candidate.links[candidate.busiest]));
}

void add_choice(std::string& text, const Choice& choice, const Step& step) {
  const Candidate& best = choice.chosen();
  add_line(text, "Best way", absl::StrCat(name_of(best.way), ": ", words_of(best.way)));
  add_line(text, "",
           absl::StrCat(time_words(best), ". Times are for a gradient of ", format_bytes(step.gradient_bytes),
                        " on each GPU, and proportional to it"));
  add_line(text, "", best.why);
  if (!best.runs()) add_line(text, "", absl::StrCat(best.unable, "."));
  if (choice.current != choice.best) {
    const Candidate& current = choice.candidates[choice.current];
    add_line(text, "Today",
             absl::StrFormat("%s: %.3g times as long, %s", name_of(current.way), current.seconds / best.seconds,
                             time_words(current)));
  }
  if (choice.runner_up.has_value()) {
    const Candidate& second = choice.candidates[*choice.runner_up];
    add_line(text, "Runner-up", absl::StrCat(name_of(second.way), ": ", time_words(second)));
  }
  if (best.way == Way::kCpuAssisted && choice.mix.has_value()) {
    add_line(text, "Limit",
             absl::StrFormat("%s if %.3g of each gradient went to host memory by brute force, which loads host memory "
                             "too much to be chosen",
                             format_seconds(choice.mix->seconds), choice.mix->brute_force_share));
  }
}

bool has_assumed(const Machine& machine) {
  const auto is_assumed = [](const auto& device) { return device.bandwidth.is_assumed; };
  return machine.across.is_assumed || machine.interconnect.is_assumed || machine.memory.is_assumed ||
         std::any_of(machine.switches.begin(), machine.switches.end(), is_assumed) ||
         std::any_of(machine.gpus.begin(), machine.gpus.end(), is_assumed) ||
         std::any_of(machine.nics.begin(), machine.nics.end(), is_assumed) ||
         std::any_of(machine.nvlink.begin(), machine.nvlink.end(), is_assumed);
}

json json_of(const Machine& machine, const Candidate& candidate) {
  json object = {{"way", name_of(candidate.way)}, {"possible", candidate.is_possible()}, {"runs", candidate.runs()}};
  if (!candidate.runs()) object["why_not_run"] = candidate.unable;
  if (!candidate.is_possible()) {
    object["why_impossible"] = candidate.impossible;
    return object;
  }
  object["why"] = candidate.why;
  object["seconds"] = candidate.seconds;
  object["busiest"] = name_of(candidate.links[candidate.busiest]);
  object["links"] = json::array();
  for (const Link& link : candidate.links) object["links"].push_back(to_json(link));
  for (const uint32_t root : candidate.roots) object["roots"].push_back(machine.gpus[root].name);
  return object;
}

}  // namespace

std::string words_of(const Bandwidth& bandwidth) {
  if (!bandwidth.is_known()) return "unknown";
  return absl::StrCat(format_bits_per_second(bandwidth.bits_per_second), bandwidth.is_assumed ? " *" : "");
}

json to_json(const Link& link) {
  json object = {{"link", name_of(link)}, {"bytes", link.bytes}};
  if (!link.bandwidth.is_known()) return object;
  object["bandwidth"] = link.bandwidth.bits_per_second;
  object["assumed"] = link.bandwidth.is_assumed;
  object["seconds"] = link.seconds();
  return object;
}

std::string to_text(const Machine& machine, const Choice& choice, const Step& step) {
  std::string text;
  add_line(text, "Machine", summary_of(machine, choice));
  if (has_assumed(machine)) {
    add_line(text, "Assumed", "bandwidths with *: they are not measured, but those of the machines of BytePS");
  }
  for (const std::string& gap : machine.gaps) add_line(text, &gap == machine.gaps.data() ? "Unknown" : "", gap);
  text += "\n";
  add_choice(text, choice, step);
  absl::StrAppend(&text, "\n", switch_table(machine), "\n", link_table(choice.chosen()), "\n", way_table(choice));
  return text;
}

json to_json(const Machine& machine, const Choice& choice, const Step& step) {
  json root = {{"machine", to_json(machine)},
               {"switches", {{"with_nic", choice.switches.with_nic}, {"without_nic", choice.switches.without_nic}}},
               {"gradient_bytes", step.gradient_bytes},
               {"best", name_of(choice.chosen().way)},
               {"today", name_of(choice.candidates[choice.current].way)},
               {"ways", json::array()}};
  if (choice.runner_up.has_value()) root["runner_up"] = name_of(choice.candidates[*choice.runner_up].way);
  if (choice.mix.has_value()) {
    root["brute_force"] = {{"share", choice.mix->brute_force_share}, {"seconds", choice.mix->seconds}};
  }
  for (const Candidate& candidate : choice.candidates) root["ways"].push_back(json_of(machine, candidate));
  return root;
}

}  // namespace gleaner::machine
