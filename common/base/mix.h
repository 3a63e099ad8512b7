// Hash functions of whole numbers and texts. They give the same values on every machine, so hashes may be part of a
// contract.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

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

// Returns the FNV-1a hash of a text, with 32 or 64 bits.
template <typename Hash>
constexpr Hash fnv1a(absl::string_view text) {
  constexpr bool kIsLong = sizeof(Hash) == sizeof(uint64_t);
  auto hash = static_cast<Hash>(kIsLong ? 0xcbf29ce484222325u : 0x811c9dc5u);
  constexpr auto kPrime = static_cast<Hash>(kIsLong ? 0x100000001b3u : 0x1000193u);
  for (const char each : text) hash = (hash ^ static_cast<uint8_t>(each)) * kPrime;
  return hash;
}

}  // namespace gleaner
