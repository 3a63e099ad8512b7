// Hashes that make a simulation a function of its seed.
#pragma once

#include <cstdint>

namespace gleaner::netsim {

// Mixes the bits of two numbers (splitmix64's finalizer).
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t value = a + 0x9e3779b97f4a7c15u * (b + 1);
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace gleaner::netsim
