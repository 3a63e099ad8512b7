#include "operator/reconcile/worker_nics.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace gleaner::reconcile {
namespace {

using nlohmann::json;

constexpr char kDeviceVariable[] = "GLEANER_RDMA_DEVICE";

// Returns the value of a variable of the template's first container; empty: it has no value there.
std::string value_in_template(const json& pod_template, const char* name) {
  const json::json_pointer place("/spec/containers/0/env");
  if (!pod_template.contains(place) || !pod_template.at(place).is_array()) return "";
  for (const json& variable : pod_template.at(place)) {
    if (!variable.is_object() || variable.value("name", json()) != name) continue;
    const json value = variable.value("value", json());
    return value.is_string() ? value.get<std::string>() : "";
  }
  return "";
}

}  // namespace

DeviceSpeeds rdma_speeds(const api::NodeProfileStatus& profile) {
  DeviceSpeeds speeds;
  for (const api::Nic& nic : profile.nics) {
    if (nic.rdma_device.empty() || nic.bits_per_second <= 0) continue;
    double& speed = speeds[nic.rdma_device];
    speed = std::max(speed, nic.bits_per_second);
  }
  return speeds;
}

std::vector<std::string> rdma_devices_of(const api::TrainingJob& job) {
  const api::Transport transport = job.communication.transport;
  if (transport != api::Transport::kAuto && transport != api::Transport::kRdma) return {};
  std::vector<std::string> devices;
  // "mlx5_0:1,mlx5_1:1:3": names with ports and GIDs.
  const std::string named = value_in_template(job.workers.pod_template, kDeviceVariable);
  for (const absl::string_view part : absl::StrSplit(named, ',')) {
    std::string device(absl::StripAsciiWhitespace(part.substr(0, part.find(':'))));
    const bool is_known = std::find(devices.begin(), devices.end(), device) != devices.end();
    if (!device.empty() && !is_known) devices.push_back(std::move(device));
  }
  return devices;
}

double worker_bits_per_second(const std::vector<std::string>& devices, const DeviceSpeeds& speeds,
                              double default_route_bits_per_second) {
  double sum = 0;
  for (const std::string& device : devices) {
    const auto found = speeds.find(device);
    if (found == speeds.end()) return default_route_bits_per_second;
    sum += found->second;
  }
  return devices.empty() ? default_route_bits_per_second : sum;
}

}  // namespace gleaner::reconcile
