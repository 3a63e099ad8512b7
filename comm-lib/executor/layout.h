// Layout says where the chunks of a work buffer lie, in elements. Pure.
#pragma once

#include <cstdint>
#include <span>

#include "common/collective/schedule.h"

namespace gleaner::executor {

class Layout {
 public:
  // Elements of a work buffer.
  struct Range {
    uint64_t first = 0;
    uint64_t count = 0;
  };

  // The chunks of `elements` elements have nearly equal sizes (collective::chunk_begin()).
  Layout(uint64_t elements, uint32_t chunks) : elements_(elements), chunks_(chunks) {}
  // Chunk i lies from begins[i] to begins[i + 1]. `begins` must outlive the layout.
  explicit Layout(std::span<const uint64_t> begins) : elements_(begins.back()), begins_(begins) {}

  uint64_t elements() const { return elements_; }
  Range range_of(const collective::Slice& slice) const {
    const uint64_t first = begin(slice.first);
    return {first, begin(slice.first + slice.count) - first};
  }

 private:
  uint64_t begin(uint32_t chunk) const {
    return begins_.empty() ? collective::chunk_begin(elements_, chunks_, chunk) : begins_[chunk];
  }

  uint64_t elements_;
  uint32_t chunks_ = 1;
  std::span<const uint64_t> begins_;
};

}  // namespace gleaner::executor
