// Functions that format numbers for JSON. A value that need not be whole is written as a string.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner::api {

int64_t whole_number(double value);                  // rounds to the nearest; 0 for negative values and NaN
std::string cpu_quantity(double cpus);               // rounds cores to the nearest thousandth: "4", "250m"
std::string decimal_text(double value);              // six decimal places, at most 1e15, at least 0: "0.972"
std::string bandwidth_text(double bits_per_second);  // exact to one bit per second: "25Gbit", "1500Mbit"

}  // namespace gleaner::api
