#include "common/plan/copies.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/base/units.h"

namespace gleaner::plan {

CopyStage copy_stage(double bytes_per_second, uint64_t gradient_bytes, uint32_t local_ranks, double network_seconds) {
  CopyStage stage;
  stage.bytes_per_second = bytes_per_second;
  stage.bytes = static_cast<double>(gradient_bytes) * local_ranks;
  stage.seconds = stage.bytes / bytes_per_second;
  stage.overlapped_seconds = std::max(stage.seconds, network_seconds);
  stage.added_seconds = 2 * stage.seconds + network_seconds;
  stage.network_seconds = network_seconds;
  return stage;
}

std::string to_text(const CopyStage& stage) {
  std::string text = absl::StrFormat(
      "Copies      between GPU and CPU memory: %s each way per worker, %s at %.4g GB/s\n"
      "            a step takes %s if copies and network overlap, %s one after the other\n",
      format_bytes(stage.bytes), format_seconds(stage.seconds), stage.bytes_per_second / 1e9,
      format_seconds(stage.overlapped_seconds), format_seconds(stage.added_seconds));
  if (stage.binds()) {
    text += "            the copies limit an overlapped step: neither faster links nor more summers help\n";
  }
  if (stage.hiding_bytes_per_second() > 0) {
    absl::StrAppendFormat(&text, "            they hide behind the network from %.4g GB/s on\n",
                          stage.hiding_bytes_per_second() / 1e9);
  }
  return text;
}

}  // namespace gleaner::plan
