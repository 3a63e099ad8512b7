// Fuzzes the bytes of a Plan message: decoding must reject them or return a valid plan, and that plan must be the same
// after it is encoded and decoded again.
#include <cstdint>
#include <cstdlib>

#include "common/plan/partitioner.h"
#include "common/proto/plan_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gleaner;  // NOLINT(google-build-using-namespace)
  v1::Plan message;
  if (!message.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto plan = proto::decode(message);
  if (!plan.ok()) return 0;
  if (!plan::validate(*plan).ok()) std::abort();
  // The functions that every member calls with a plan must give consistent results, too.
  uint64_t owned = 0, bytes = 0;
  for (const uint64_t share : plan::owned_bytes(*plan)) owned += share;
  for (const plan::Tensor& tensor : plan->tensors) bytes += tensor.bytes();
  if (owned != bytes) std::abort();
  v1::Plan again;
  proto::encode(*plan, &again);
  const auto decoded = proto::decode(again);
  if (!decoded.ok() || !(*decoded == *plan)) std::abort();
  return 0;
}
