// The loops that the vector variants share. Internal to this folder: only translation units that are compiled for an
// instruction set include it. All functions here have internal linkage, so each translation unit has its own copy (see
// variant.h).
//
// `Type` describes the sources' and the result's data type in one instruction set:
//   Vector                              kLanes elements in the accumulator's type
//   kLanes, kElementBytes               elements of a Vector, bytes of an element of a source
//   kResultBytes                        bytes of an element of the result
//   Vector load(const std::byte*)       unaligned
//   Vector add(Vector, Vector), Vector divide(Vector, Vector), Vector broadcast(uint32_t)
//   void store(std::byte*, Vector)      unaligned; rounds, and makes NaN canonical
//
// A sum is bound by memory bandwidth, so every source is read once and the result is written once, however many sources
// there are. The prefetch distances below were measured, see docs/history.md#kernels: without them 16-bit types reach
// 0.8 of memcpy's rate at 64 MiB, with them more than 0.9.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gleaner::kernels {
namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kReadAhead = 2048;
constexpr size_t kWriteAhead = 1024;
constexpr size_t kMaxStreams = 8;
constexpr size_t kTileBytes = 4096;

template <typename Type>
constexpr size_t kVectorBytes = Type::kLanes* Type::kElementBytes;
template <typename Type>
constexpr size_t kVectorResultBytes = Type::kLanes* Type::kResultBytes;

// Returns the byte of the result that belongs to byte `offset` of each source, the first byte of an element.
template <typename Type>
inline std::byte* result_at(std::byte* result, size_t offset) {
  return result + offset / Type::kElementBytes * Type::kResultBytes;
}

template <typename Type, size_t kVectors, bool kDivide>
inline void finish(typename Type::Vector (&sums)[kVectors], std::byte* result, typename Type::Vector divisor) {
  for (size_t v = 0; v < kVectors; ++v) {
    if constexpr (kDivide) sums[v] = Type::divide(sums[v], divisor);
    Type::store(result + v * kVectorResultBytes<Type>, sums[v]);
  }
}

// Sums, in registers, kVectors vectors of each source from byte `offset` on. For few sources. All loads come before the
// first store, so `result` may be a source.
template <typename Type, size_t kVectors, bool kDivide>
inline void sum_block(const std::byte* const* sources, size_t count, std::byte* result, size_t offset,
                      typename Type::Vector divisor) {
  for (size_t line = 0; line < kVectors * kVectorBytes<Type>; line += kLineBytes) {
    for (size_t s = 0; s < count; ++s) __builtin_prefetch(sources[s] + offset + line + kReadAhead);
  }
  for (size_t line = 0; line < kVectors * kVectorResultBytes<Type>; line += kLineBytes) {
    __builtin_prefetch(result_at<Type>(result, offset) + line + kWriteAhead, 1);
  }
  typename Type::Vector sums[kVectors];
  for (size_t v = 0; v < kVectors; ++v) sums[v] = Type::load(sources[0] + offset + v * kVectorBytes<Type>);
  for (size_t s = 1; s < count; ++s) {
    const std::byte* source = sources[s] + offset;
    for (size_t v = 0; v < kVectors; ++v) sums[v] = Type::add(sums[v], Type::load(source + v * kVectorBytes<Type>));
  }
  finish<Type, kVectors, kDivide>(sums, result_at<Type>(result, offset), divisor);
}

// Sums a page (tile) of each source, one source after the other, with the sums in the first-level cache. The next
// source's page is prefetched while this one is summed. For many sources: reading more than a few streams side by side
// overwhelms the processor's prefetcher, and streams evict each other where their pages map to the same cache lines.
template <typename Type, bool kDivide>
void sum_tile(const std::byte* const* sources, size_t count, std::byte* result, size_t offset,
              typename Type::Vector divisor) {
  constexpr size_t kVectors = kTileBytes / kVectorBytes<Type>;
  typename Type::Vector sums[kVectors];
  for (size_t v = 0; v < kVectors; ++v) sums[v] = Type::load(sources[0] + offset + v * kVectorBytes<Type>);
  for (size_t s = 1; s < count; ++s) {
    const std::byte* source = sources[s] + offset;
    const std::byte* next = s + 1 < count ? sources[s + 1] + offset : sources[0] + offset + kTileBytes;
    for (size_t v = 0; v < kVectors; ++v) {
      __builtin_prefetch(next + v * kVectorBytes<Type>);
      sums[v] = Type::add(sums[v], Type::load(source + v * kVectorBytes<Type>));
    }
  }
  finish<Type, kVectors, kDivide>(sums, result_at<Type>(result, offset), divisor);
}

// Sums the last elements, fewer than a vector: copies them to and from an array that holds a whole vector.
template <typename Type, bool kDivide>
void sum_tail(const std::byte* const* sources, size_t count, std::byte* result, size_t offset, size_t bytes,
              typename Type::Vector divisor) {
  std::byte padded[kVectorBytes<Type>] = {};
  std::memcpy(padded, sources[0] + offset, bytes);
  typename Type::Vector sums[1] = {Type::load(padded)};
  for (size_t s = 1; s < count; ++s) {
    std::memcpy(padded, sources[s] + offset, bytes);
    sums[0] = Type::add(sums[0], Type::load(padded));
  }
  std::byte padded_result[kVectorResultBytes<Type>];
  finish<Type, 1, kDivide>(sums, padded_result, divisor);
  std::memcpy(result_at<Type>(result, offset), padded_result, bytes / Type::kElementBytes * Type::kResultBytes);
}

template <typename Type, size_t kBlockBytes, bool kDivide>
void sum_all(const std::byte* const* sources, size_t count, std::byte* result, size_t elements, uint32_t divisor) {
  constexpr size_t kBlockVectors = kBlockBytes / kVectorBytes<Type>;
  const typename Type::Vector divisors = Type::broadcast(divisor);
  const size_t bytes = elements * Type::kElementBytes;
  size_t offset = 0;
  if (count > kMaxStreams) {
    for (; bytes - offset >= kTileBytes; offset += kTileBytes) {
      sum_tile<Type, kDivide>(sources, count, result, offset, divisors);
    }
  }
  for (; bytes - offset >= kBlockBytes; offset += kBlockBytes) {
    sum_block<Type, kBlockVectors, kDivide>(sources, count, result, offset, divisors);
  }
  for (; bytes - offset >= kVectorBytes<Type>; offset += kVectorBytes<Type>) {
    sum_block<Type, 1, kDivide>(sources, count, result, offset, divisors);
  }
  if (offset < bytes) sum_tail<Type, kDivide>(sources, count, result, offset, bytes - offset, divisors);
}

// kBlockBytes: bytes of each source that are summed at a time, as many as the registers hold.
template <typename Type, size_t kBlockBytes>
void vector_sum(const std::byte* const* sources, size_t count, std::byte* result, size_t elements, uint32_t divisor) {
  if (divisor == 1) {
    sum_all<Type, kBlockBytes, false>(sources, count, result, elements, divisor);
  } else {
    sum_all<Type, kBlockBytes, true>(sources, count, result, elements, divisor);
  }
}

}  // namespace
}  // namespace gleaner::kernels
