#include "common/machine/json.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/api/node_profile.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/machine/profile.h"
#include "common/topology/json_fields.h"

namespace gleaner::machine {
namespace {

using topology::check_fields;
using topology::Json;
using topology::read_bandwidth;
using topology::read_list;
using topology::read_name;

using Names = std::map<std::string, uint32_t>;

absl::StatusOr<bool> read_flag(const Json& object, const char* field, absl::string_view what) {
  if (!object.contains(field)) return false;
  if (object[field].is_boolean()) return object[field].get<bool>();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": \"", field, "\" is ", object[field].dump().substr(0, 64), "; give true or false"));
}

// `assumed` takes the place of a bandwidth that is left out; 0: it stays unknown.
absl::StatusOr<Bandwidth> read_speed(const Json& object, const std::string& what, double assumed) {
  GLN_ASSIGN_OR_RETURN(const bool is_assumed, read_flag(object, "assumed", what));
  if (!object.contains("bandwidth")) return Bandwidth{assumed, assumed > 0};
  GLN_ASSIGN_OR_RETURN(const double speed,
                       read_bandwidth(object["bandwidth"], [&] { return absl::StrCat(what, ": \"bandwidth\""); }));
  return Bandwidth{speed, is_assumed};
}

absl::StatusOr<int> read_node(const Json& object, const std::string& what) {
  if (!object.contains("numa")) return -1;
  const Json& value = object["numa"];
  if (value.is_number_unsigned() && value.get<uint64_t>() <= 4095) return value.get<int>();
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": \"numa\" is ", value.dump().substr(0, 64), "; give the number of a NUMA node, from 0"));
}

absl::StatusOr<uint32_t> find(const Names& names, const std::string& name, const std::string& what,
                              absl::string_view kind) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", quote(name), ", which is the name of no ", kind, " of this file"));
}

// Reads the fields that GPUs and NICs have in common.
template <class Device>
absl::Status read_device(const Json& entry, const std::string& what, const Machine& machine, const Names& switches,
                         double assumed, Device& device) {
  GLN_ASSIGN_OR_RETURN(device.name, read_name(entry["name"], [&] { return absl::StrCat(what, ": \"name\""); }));
  GLN_ASSIGN_OR_RETURN(device.bandwidth, read_speed(entry, what, assumed));
  GLN_ASSIGN_OR_RETURN(device.numa_node, read_node(entry, what));
  if (!entry.contains("switch")) return absl::OkStatus();
  const std::string where = absl::StrCat(what, ": \"switch\"");
  GLN_ASSIGN_OR_RETURN(const std::string name, read_name(entry["switch"], [&] { return where; }));
  GLN_ASSIGN_OR_RETURN(device.at, find(switches, name, where, "switch"));
  if (entry.contains("numa") && device.numa_node != machine.switches[*device.at].numa_node) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": \"numa\" differs from that of its switch; leave it out beside \"switch\""));
  }
  device.numa_node = machine.switches[*device.at].numa_node;
  return absl::OkStatus();
}

absl::StatusOr<Names> read_switches(const Json& list, Machine& machine) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* entries, read_list(list, "\"switches\"", "objects with \"name\""));
  Names names;
  for (const Json& entry : *entries) {
    const std::string what = absl::StrCat("switch ", machine.switches.size());
    GLN_RETURN_IF_ERROR(check_fields(entry, what, {"name"}, {"numa", "bandwidth", "assumed"}));
    Switch node;
    GLN_ASSIGN_OR_RETURN(node.name, read_name(entry["name"], [&] { return absl::StrCat(what, ": \"name\""); }));
    GLN_ASSIGN_OR_RETURN(node.numa_node, read_node(entry, what));
    GLN_ASSIGN_OR_RETURN(node.bandwidth, read_speed(entry, what, kAssumedPcie));
    names.emplace(node.name, static_cast<uint32_t>(machine.switches.size()));
    machine.switches.push_back(std::move(node));
  }
  return names;
}

absl::Status read_gpus(const Json& list, const Names& switches, Machine& machine) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* entries, read_list(list, "\"gpus\"", "objects with \"name\""));
  for (const Json& entry : *entries) {
    const std::string what = absl::StrCat("GPU ", machine.gpus.size());
    GLN_RETURN_IF_ERROR(check_fields(entry, what, {"name"}, {"switch", "numa", "bandwidth", "assumed", "mig"}));
    Gpu gpu;
    GLN_RETURN_IF_ERROR(read_device(entry, what, machine, switches, kAssumedPcie, gpu));
    GLN_ASSIGN_OR_RETURN(gpu.is_mig, read_flag(entry, "mig", what));
    machine.gpus.push_back(std::move(gpu));
  }
  return absl::OkStatus();
}

absl::Status read_nics(const Json& list, const Names& switches, Machine& machine) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* entries, read_list(list, "\"nics\"", "objects with \"name\""));
  for (const Json& entry : *entries) {
    const std::string what = absl::StrCat("NIC ", machine.nics.size());
    GLN_RETURN_IF_ERROR(check_fields(entry, what, {"name"}, {"switch", "numa", "bandwidth", "assumed", "rdma"}));
    Nic nic;
    GLN_RETURN_IF_ERROR(read_device(entry, what, machine, switches, kAssumedNic, nic));
    GLN_ASSIGN_OR_RETURN(nic.is_rdma, read_flag(entry, "rdma", what));
    machine.nics.push_back(std::move(nic));
  }
  return absl::OkStatus();
}

absl::Status read_nvlink(const Json& list, Machine& machine) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* entries, read_list(list, "\"nvlink\"", "objects with \"gpus\""));
  Names gpus;
  for (uint32_t i = 0; i < machine.gpus.size(); ++i) gpus.emplace(machine.gpus[i].name, i);
  for (const Json& entry : *entries) {
    const std::string what = absl::StrCat("NVLink group ", machine.nvlink.size());
    GLN_RETURN_IF_ERROR(check_fields(entry, what, {"gpus"}, {"bandwidth", "assumed", "direct"}));
    NvlinkGroup group;
    GLN_ASSIGN_OR_RETURN(group.is_direct, read_flag(entry, "direct", what));
    const std::string where = absl::StrCat(what, ": \"gpus\"");
    GLN_ASSIGN_OR_RETURN(const Json::array_t* members, read_list(entry["gpus"], where, "names of GPUs"));
    for (const Json& member : *members) {
      GLN_ASSIGN_OR_RETURN(const std::string name, read_name(member, [&] { return where; }));
      GLN_ASSIGN_OR_RETURN(const uint32_t gpu, find(gpus, name, where, "GPU"));
      group.gpus.push_back(gpu);
    }
    GLN_ASSIGN_OR_RETURN(group.bandwidth, read_speed(entry, what, kAssumedNvlink));
    machine.nvlink.push_back(std::move(group));
  }
  return absl::OkStatus();
}

absl::Status read_shared(const Json& root, const char* field, double assumed, Bandwidth& bandwidth) {
  const std::string what = absl::StrCat("\"", field, "\"");
  if (root.contains(field)) GLN_RETURN_IF_ERROR(check_fields(root[field], what, {}, {"bandwidth", "assumed"}));
  GLN_ASSIGN_OR_RETURN(bandwidth, read_speed(root.contains(field) ? root[field] : Json::object(), what, assumed));
  return absl::OkStatus();
}

absl::Status read_gaps(const Json& list, Machine& machine) {
  GLN_ASSIGN_OR_RETURN(const Json::array_t* entries, read_list(list, "\"gaps\"", "sentences"));
  for (const Json& entry : *entries) {
    GLN_ASSIGN_OR_RETURN(std::string text, read_name(entry, [] { return std::string("an entry of \"gaps\""); }));
    machine.gaps.push_back(std::move(text));
  }
  return absl::OkStatus();
}

absl::StatusOr<Machine> read_machine_file(const Json& root) {
  GLN_RETURN_IF_ERROR(
      check_fields(root, "the machine", {"gpus"},
                   {"switches", "nics", "nvlink", "across_switches", "interconnect", "memory", "gaps"}));
  Machine machine;
  Names switches;
  if (root.contains("switches")) {
    GLN_ASSIGN_OR_RETURN(switches, read_switches(root["switches"], machine));
  }
  GLN_RETURN_IF_ERROR(read_gpus(root["gpus"], switches, machine));
  if (root.contains("nics")) GLN_RETURN_IF_ERROR(read_nics(root["nics"], switches, machine));
  if (root.contains("nvlink")) GLN_RETURN_IF_ERROR(read_nvlink(root["nvlink"], machine));
  if (root.contains("gaps")) GLN_RETURN_IF_ERROR(read_gaps(root["gaps"], machine));
  GLN_RETURN_IF_ERROR(read_shared(root, "across_switches", assumed_across(machine), machine.across));
  GLN_RETURN_IF_ERROR(read_shared(root, "interconnect", 0, machine.interconnect));
  GLN_RETURN_IF_ERROR(read_shared(root, "memory", 0, machine.memory));
  GLN_RETURN_IF_ERROR(check(machine));
  return machine;
}

void write_speed(Json& object, const Bandwidth& bandwidth) {
  if (!bandwidth.is_known()) return;
  object["bandwidth"] = bandwidth.bits_per_second;
  if (bandwidth.is_assumed) object["assumed"] = true;
}

template <class Device>
Json device_json(const Machine& machine, const Device& device) {
  Json object = {{"name", device.name}};
  if (device.at.has_value()) object["switch"] = machine.switches[*device.at].name;
  if (!device.at.has_value() && device.numa_node >= 0) object["numa"] = device.numa_node;
  write_speed(object, device.bandwidth);
  return object;
}

}  // namespace

absl::StatusOr<Machine> parse_machine(absl::string_view text) {
  GLN_ASSIGN_OR_RETURN(const Json root, topology::parse_json(text));
  if (!root.is_object() || !root.contains("kind")) return read_machine_file(root);
  if (root["kind"] != "NodeProfile") {
    return absl::InvalidArgumentError(absl::StrCat("\"kind\" is ", root["kind"].dump().substr(0, 64),
                                                   "; give one NodeProfile, as of kubectl get nprof NODE -o json"));
  }
  GLN_ASSIGN_OR_RETURN(const api::NodeProfile profile, api::parse_node_profile(root));
  Machine machine = machine_of(profile.status);
  GLN_RETURN_IF_ERROR(check(machine));
  return machine;
}

Json to_json(const Machine& machine) {
  Json root = {{"switches", Json::array()}, {"gpus", Json::array()}, {"nics", Json::array()}};
  for (const Switch& node : machine.switches) {
    Json object = {{"name", node.name}};
    if (node.numa_node >= 0) object["numa"] = node.numa_node;
    write_speed(object, node.bandwidth);
    root["switches"].push_back(std::move(object));
  }
  for (const Gpu& gpu : machine.gpus) {
    Json object = device_json(machine, gpu);
    if (gpu.is_mig) object["mig"] = true;
    root["gpus"].push_back(std::move(object));
  }
  for (const Nic& nic : machine.nics) {
    Json object = device_json(machine, nic);
    object["rdma"] = nic.is_rdma;
    root["nics"].push_back(std::move(object));
  }
  for (const NvlinkGroup& group : machine.nvlink) {
    Json object = {{"gpus", Json::array()}};
    for (const uint32_t gpu : group.gpus) object["gpus"].push_back(machine.gpus[gpu].name);
    write_speed(object, group.bandwidth);
    if (group.is_direct) object["direct"] = true;
    root["nvlink"].push_back(std::move(object));
  }
  const std::pair<const char*, const Bandwidth*> shared[] = {
      {"across_switches", &machine.across}, {"interconnect", &machine.interconnect}, {"memory", &machine.memory}};
  for (const auto& [field, bandwidth] : shared) {
    if (bandwidth->is_known()) write_speed(root[field], *bandwidth);
  }
  if (!machine.gaps.empty()) root["gaps"] = machine.gaps;
  return root;
}

}  // namespace gleaner::machine
