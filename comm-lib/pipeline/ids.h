// Bits of the ids of pieces. A stage that passes some pieces on unchanged, and makes other ones, tells both apart by a
// bit of its own in the ids that it chooses. Handles of the rank, the least ids, have none of these bits.
#pragma once

#include <cstdint>

namespace gleaner::pipeline {

inline constexpr uint64_t kDeviceBit = uint64_t{1} << 63;    // pieces of device::DeviceStage
inline constexpr uint64_t kCallBit = uint64_t{1} << 62;      // calls, which share the network with pieces
inline constexpr uint64_t kEncodingBit = uint64_t{1} << 61;  // pieces of encoding::EncodingStage

}  // namespace gleaner::pipeline
