// Chooses among several claims about the machine's speed. Pure.
#pragma once

#include <string>

#include "common/api/node_profile.h"

namespace gleaner::probe {

struct SpeedClaims {
  double flag = 0;      // all claims are in bits per second each way; 0: no claim
  std::string label;    // the node's label as written: "25Gbit"; empty: none
  double sysfs = 0;     // from the NIC with the default route
  std::string driver;   // of that NIC; empty: virtual
  double measured = 0;  // measured between this node and another
};

struct Speed {
  double bits_per_second = 0;
  api::SpeedSource source = api::SpeedSource::kUnknown;
  // Reason of the condition SpeedKnown: Flag, Label, Sysfs, Measured, Unknown, ClaimAboveLink, BadLabel.
  std::string reason;
  std::string message;  // for people
  // True if an administrator should act: the label can't be parsed, or a claim exceeds the link's speed.
  bool doubtful = false;
};

// Returns the first claim among flag, label, sysfs and measurement. A flag or label above the link speed of a physical
// NIC is reduced to that speed. The speed that a hypervisor's NIC reports is not such a limit. A label that can't be
// parsed is ignored.
Speed choose_speed(const SpeedClaims& claims);

}  // namespace gleaner::probe
