// Hash functions of whole numbers. They give the same values on every machine, so hashes may be part of a contract.
#pragma once

#include <cstdint>

namespace gleaner {

// Mixes the bits of a number such that near numbers give unlike values: the finalizer of splitmix64. 0 stays 0.
constexpr uint64_t mix_bits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

inline constexpr uint64_t kSplitmix64Step = 0x9e3779b97f4a7c15u;

// Returns the number that the generator splitmix64 gives in the state `value`.
constexpr uint64_t splitmix64(uint64_t value) { return mix_bits(value + kSplitmix64Step); }

}  // namespace gleaner
