#include "common/collective/oracle.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/messages.h"

namespace gleaner::collective {

absl::StatusOr<std::vector<std::vector<float>>> execute(const Schedule& schedule,
                                                        std::vector<std::vector<float>> inputs) {
  GLN_ASSIGN_OR_RETURN(const Messages messages, Messages::make(schedule));
  if (inputs.size() != schedule.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", inputs.size(), " inputs for ", schedule.ranks, " ranks; give one for each"));
  }
  const size_t elements = inputs[0].size();
  for (size_t rank = 1; rank < inputs.size(); ++rank) {
    if (inputs[rank].size() == elements) continue;
    return absl::InvalidArgumentError(absl::StrCat("the input of rank ", rank, " has ", inputs[rank].size(),
                                                   " elements, that of rank 0 has ", elements));
  }
  std::vector<std::vector<float>> under_way(messages.all().size());  // by message
  const auto execute_op = [&](uint32_t rank, uint32_t op, uint32_t message) {
    const Slice slice = messages.all()[message].slice;
    const size_t begin = chunk_begin(elements, schedule.chunks, slice.first);
    const size_t end = chunk_begin(elements, schedule.chunks, slice.first + slice.count);
    float* own = inputs[rank].data() + begin;
    std::vector<float>& payload = under_way[message];
    const OpKind kind = schedule.programs[rank][op].kind;
    if (kind == OpKind::kSend) {
      payload.assign(own, own + (end - begin));
      return absl::OkStatus();
    }
    for (size_t i = 0; i < payload.size(); ++i)
      own[i] = kind == OpKind::kReceiveReduce ? own[i] + payload[i] : payload[i];
    std::vector<float>().swap(payload);
    return absl::OkStatus();
  };
  GLN_RETURN_IF_ERROR(messages.run(schedule, execute_op));
  return inputs;
}

}  // namespace gleaner::collective
