#include "summation-service/engine/accumulation_takeover.h"

#include <utility>

#include "common/base/faults.h"

namespace gleaner::engine {

bool AccumulationTakeover::hear(uint32_t worker, uint64_t version) {
  heard_[worker] = 1;
  const bool any = GLN_MUTATION("a running sum is fetched from any worker");
  if (any || source_ == kNone || version > version_) {
    version_ = version;
    source_ = worker;
  }
  return --missing_ == 0;
}

void AccumulationTakeover::keep(uint32_t worker, Buffer values, uint64_t step) {
  waiting_[worker] = {std::move(values), step};
}

}  // namespace gleaner::engine
