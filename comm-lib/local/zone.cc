#include "comm-lib/local/zone.h"

namespace gleaner::local {

Zone lay_out_zone(std::span<const TensorSize> tensors, uint32_t ranks, uint32_t owner) {
  Zone zone;
  zone.tensors.reserve(tensors.size());
  for (const TensorSize& tensor : tensors) {
    const Slice slice = slice_of(tensor.bytes, ranks, owner);
    const size_t bytes = slice.end - slice.begin;
    const size_t sum_bytes = bytes / size_of(tensor.type) * size_of(accumulator_of(tensor.type));
    ZoneTensor placed{zone.bytes, round_up(bytes, kZoneAlignment), 0};
    placed.sum = placed.slots + ranks * placed.slot_distance;
    zone.bytes = placed.sum + round_up(sum_bytes, kZoneAlignment);
    zone.tensors.push_back(placed);
  }
  return zone;
}

}  // namespace gleaner::local
