#include "agent/probe/speed.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/units.h"

namespace gleaner::probe {
namespace {

using api::SpeedSource;

// These drivers report the speed that the hypervisor gives them: often that of the host's link, or a meaningless
// number.
constexpr std::array<absl::string_view, 8> kHypervisorDrivers = {
    "virtio_net", "hv_netvsc", "vmxnet3", "ena", "gve", "vif", "xen_netfront", "xen-netfront"};

bool is_link_speed(const SpeedClaims& claims) {
  const bool hypervisor =
      std::find(kHypervisorDrivers.begin(), kHypervisorDrivers.end(), claims.driver) != kHypervisorDrivers.end();
  return claims.sysfs > 0 && !claims.driver.empty() && !hypervisor;
}

Speed claimed(double bits_per_second, SpeedSource source, const SpeedClaims& claims, const std::string& who) {
  if (is_link_speed(claims) && bits_per_second > claims.sysfs) {
    return {claims.sysfs, SpeedSource::kSysfs, "ClaimAboveLink",
            absl::StrCat(who, " claims ", format_bits_per_second(bits_per_second), ", but the NIC's link runs at ",
                         format_bits_per_second(claims.sysfs), ", which is used"),
            true};
  }
  return {bits_per_second, source, source == SpeedSource::kFlag ? "Flag" : "Label",
          absl::StrCat(who, " gives ", format_bits_per_second(bits_per_second)), false};
}

Speed found(const SpeedClaims& claims) {
  if (claims.sysfs > 0) {
    return {claims.sysfs, SpeedSource::kSysfs, "Sysfs",
            absl::StrCat("the kernel reports ", format_bits_per_second(claims.sysfs)), false};
  }
  if (claims.measured > 0) {
    return {claims.measured, SpeedSource::kMeasured, "Measured",
            absl::StrCat("measured with another node: ", format_bits_per_second(claims.measured)), false};
  }
  return {0, SpeedSource::kUnknown, "Unknown",
          absl::StrCat("the kernel does not know the NIC's speed: set the node's label ", api::kNodeBandwidthLabel,
                       ", such as 25Gbit, or the agent's --bandwidth"),
          false};
}

}  // namespace

Speed choose_speed(const SpeedClaims& claims) {
  if (claims.flag > 0) return claimed(claims.flag, SpeedSource::kFlag, claims, "--bandwidth");
  if (claims.label.empty()) return found(claims);
  const std::string who = absl::StrCat("the label ", api::kNodeBandwidthLabel);
  const absl::StatusOr<double> label = parse_bits_per_second(claims.label);
  if (label.ok()) return claimed(*label, SpeedSource::kLabel, claims, who);
  Speed speed = found(claims);
  speed.reason = "BadLabel";
  speed.message = absl::StrCat(who, ": ", label.status().message(), "; ", speed.message);
  speed.doubtful = true;
  return speed;
}

}  // namespace gleaner::probe
