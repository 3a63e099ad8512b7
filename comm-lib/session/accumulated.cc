// Partitions of tensors that accumulate: each answer is a running sum, with how many contributions of each worker are
// in.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"
#include "comm-lib/session/core.h"
#include "common/base/faults.h"

namespace gleaner::session {
namespace {

uint64_t count_at(const Buffer& answer, uint64_t offset, uint32_t worker) {
  uint64_t count = 0;
  std::memcpy(&count, answer.bytes().data() + offset + worker * sizeof(count), sizeof(count));
  return count;
}

}  // namespace

uint64_t Session::Core::version_of(uint32_t index, const Buffer& answer) const {
  uint64_t version = 0;
  for (uint32_t worker = 0; worker < plan_->workers; ++worker) {
    version += count_at(answer, plan_->partitions[index].bytes, worker);
  }
  return version;
}

// That what is in it is all that was, and this worker's contributions up to this step.
absl::Status Session::Core::check_accumulated(uint32_t index, const wire::Header& header, const Buffer& payload) const {
  const uint64_t own = count_at(payload, plan_->partitions[index].bytes, options_.worker);
  const uint64_t version = version_of(index, payload);
  if (own == header.step + 1 && version > accumulated_[index].version) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(plan_->member_name(header.sender), " sent ", describe(*plan_, header),
                                                 " with ", own, " contributions of this worker and ", version,
                                                 " in all, expected ", header.step + 1, " and more than ",
                                                 accumulated_[index].version));
}

void Session::Core::keep_accumulated(uint32_t index, Buffer answer) {
  Accumulated& kept = accumulated_[index];
  accumulated_bytes_ += answer.size() - kept.answer.size();
  kept.version = version_of(index, answer);
  kept.answer = std::move(answer);
}

void Session::Core::hand_on_accumulated(uint32_t owner, uint32_t index, const wire::Header& wanted, Actions& actions) {
  const Accumulated& kept = accumulated_[index];
  if (kept.answer.empty() || kept.version != wanted.step) {
    GLN_RARE("session: a version is asked for that was handed on long ago");
    return;
  }
  ++counters_.handed;
  wire::Header header = header_of(wire::FrameType::kHand, kept.answer);
  header.data_type = plan_->tensors[wanted.tensor].type;
  header.op = ReduceOp::kAccumulate;
  header.tensor = wanted.tensor;
  header.partition = wanted.partition;
  header.step = wanted.step;
  actions.sends.push_back({owner, header, kept.answer});
}

}  // namespace gleaner::session
