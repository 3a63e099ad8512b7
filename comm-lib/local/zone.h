// Functions that compute where the tensors of a batch lie in the GPU memory of the ranks that sum them. Pure.
//
// Each rank has a *zone* per batch: GPU memory that all local ranks can write to. It has, for each tensor, the rank's
// slice of every rank's input (*slots*), and behind them the slice of the partial sum in the accumulator's type. Slots
// begin at multiples of 256 bytes, as the driver aligns memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm-lib/local/layout.h"
#include "common/base/accumulator.h"
#include "common/base/bytes.h"

namespace gleaner::local {

inline constexpr size_t kZoneAlignment = 256;

struct ZoneTensor {
  size_t slots = 0;          // offset of rank 0's slot, in bytes
  size_t slot_distance = 0;  // from one rank's slot to the next
  size_t sum = 0;            // offset of the partial sum
};

struct Zone {
  std::vector<ZoneTensor> tensors;
  size_t bytes = 0;
};

struct TensorSize {
  size_t bytes = 0;
  DataType type = DataType::kFloat32;
};

// Returns the zone of `owner`, one of `ranks` ranks.
Zone lay_out_zone(std::span<const TensorSize> tensors, uint32_t ranks, uint32_t owner);

}  // namespace gleaner::local
