// Numbers as the objects' JSON has them: what is no whole number there is a string or a smaller unit.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner::types {

int64_t whole_number(double value);                  // to the nearest; what is negative or no number is 0
std::string cpu_quantity(double cpus);               // cores, to the nearest thousandth: "4", "250m"
std::string decimal_text(double value);              // at most 1e15, to six places: "0.972"
std::string bandwidth_text(double bits_per_second);  // exact to the bit: "25Gbit", "1500Mbit"

}  // namespace gleaner::types
