// Prices says how much the machines of a job cost, and so how much a step costs and how many steps a second 1000 $ buy.
// Source: Luo §6.1.10 (Table 6.3), which charges each port of a machine for its network interface N, its switch port S,
// its cable C, and for a part F of the ports and cables above its switch:
//
//   A = (N + S + C) + F(4S + 2C)
//
// F is 1 for full bisection bandwidth and 1/2 where uplinks are oversubscribed 2:1. The text charges N once more for
// each port, beside A; here a port has one network interface. Its cost P of a PHub says W (a worker) where its own
// definition has H. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace gleaner::plan {

// In dollars.
struct Prices {
  double worker = 0;  // without its network
  double summer = 0;  // without its network; 0: the machine is spare
  uint32_t summer_ports = 1;
  double nic = 0;          // N, per port
  double switch_port = 0;  // S
  double cable = 0;        // C
  double uplinks = 1;      // F, from 0 to 1
  double hours = 26280;    // that a machine serves; 1 for prices per hour

  // Returns A, the price of the network of one port.
  double port() const { return nic + switch_port + cable + uplinks * (4 * switch_port + 2 * cable); }
  // Returns the price of a job's machines.
  double total(uint32_t workers, uint32_t summers) const {
    return workers * (worker + port()) + summers * (summer + summer_ports * port());
  }
  // Returns what machines of the price `total` cost during a step.
  double of_step(double total, double step_seconds) const { return total * step_seconds / (hours * 3600); }
};

// InvalidArgument: a price is negative or not finite, there is no port or hour, or F is out of range.
absl::Status validate(const Prices& prices);

// Returns the steps per second that 1000 $ buy.
inline double throughput_per_1000(double total, double step_seconds) { return 1000 / (total * step_seconds); }

}  // namespace gleaner::plan
