// Which of several statements about the machine's speed counts. Pure.
#pragma once

#include <string>

#include "operator/types/node_profile.h"

namespace gleaner::probe {

struct SpeedClaims {
  double flag = 0;      // bits per second each way, as all below; 0: nothing is claimed
  std::string label;    // of the node, as it is written: "25Gbit"; empty: none
  double sysfs = 0;     // of the NIC with the default route
  std::string driver;   // of that NIC; empty: virtual
  double measured = 0;  // between this node and another
};

struct Speed {
  double bits_per_second = 0;
  types::SpeedSource source = types::SpeedSource::kUnknown;
  std::string reason;   // of the condition SpeedKnown: Flag, Label, Sysfs, Measured, Unknown, ClaimAboveLink, BadLabel
  std::string message;  // for people
  bool doubtful = false;  // somebody should look: the label can't be read, or claims more than the link can carry
};

// Flag, label, sysfs, measurement, in this order. A flag or label above the link speed of a physical NIC is cut down to
// that; the speed that a hypervisor's NIC reports is no such limit. A label that can't be read is passed over.
Speed choose_speed(const SpeedClaims& claims);

}  // namespace gleaner::probe
