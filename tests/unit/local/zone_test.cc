// Tests of where tensors lie in the zones of local ranks.
#include "comm-lib/local/zone.h"

#include <gtest/gtest.h>

namespace gleaner::local {
namespace {

// The slots and sums of all tensors follow each other without an overlap, and have room for the slice of their rank.
TEST(Zone, HasASlotOfEachRankAndASumOfEachTensor) {
  const std::vector<TensorSize> tensors = {{1 << 20, DataType::kFloat32},
                                           {100'002, DataType::kBFloat16},
                                           {40'000, DataType::kFloat64},
                                           {0, DataType::kInt32}};
  for (const uint32_t ranks : {2u, 3u, 8u}) {
    for (uint32_t owner = 0; owner < ranks; ++owner) {
      const Zone zone = lay_out_zone(tensors, ranks, owner);
      size_t end = 0;
      for (size_t i = 0; i < tensors.size(); ++i) {
        const Slice slice = slice_of(tensors[i].bytes, ranks, owner);
        const size_t bytes = slice.end - slice.begin;
        const ZoneTensor& placed = zone.tensors[i];
        EXPECT_EQ(placed.slots % kZoneAlignment + placed.slot_distance % kZoneAlignment + placed.sum % kZoneAlignment,
                  0u);
        EXPECT_GE(placed.slots, end);
        EXPECT_GE(placed.slot_distance, bytes);
        EXPECT_GE(placed.sum, placed.slots + (ranks - 1) * placed.slot_distance + bytes);
        end = placed.sum + bytes * (tensors[i].type == DataType::kBFloat16 ? 2 : 1);
      }
      EXPECT_GE(zone.bytes, end);
    }
  }
}

TEST(Zone, ZonesOfAllRanksAreLittleMoreThanTheInputsAndTheirSum) {
  const std::vector<TensorSize> tensors(10, {8 << 20, DataType::kFloat32});
  size_t bytes = 0;
  for (uint32_t owner = 0; owner < 4; ++owner) bytes += lay_out_zone(tensors, 4, owner).bytes;
  EXPECT_EQ(bytes, 10u * (8 << 20) * 5);
}

}  // namespace
}  // namespace gleaner::local
