#include "common/member/trace_order.h"

namespace gleaner::member {

using control::TraceOrder;

std::optional<trace::Recording> obey(TraceOrder order, trace::Recorder& recorder) {
  switch (order) {
    case TraceOrder::kRecord:
      recorder.start();
      break;
    case TraceOrder::kStop:
      recorder.stop();
      break;
    case TraceOrder::kSend:
      return recorder.take();
    case TraceOrder::kForget:
      recorder.forget();
      break;
  }
  return std::nullopt;
}

}  // namespace gleaner::member
