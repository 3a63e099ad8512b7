#include "comm-lib/session/accumulated_answers.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"

namespace gleaner::session {
namespace {

uint64_t count_of(const plan::Plan& plan, uint32_t partition, const Buffer& answer, uint32_t worker) {
  uint64_t count = 0;
  const uint64_t offset = plan.partitions[partition].bytes + worker * sizeof(count);
  std::memcpy(&count, answer.bytes().data() + offset, sizeof(count));
  return count;
}

uint64_t version_of(const plan::Plan& plan, uint32_t partition, const Buffer& answer) {
  uint64_t version = 0;
  for (uint32_t worker = 0; worker < plan.workers; ++worker) version += count_of(plan, partition, answer, worker);
  return version;
}

}  // namespace

absl::Status AccumulatedAnswers::check(const plan::Plan& plan, uint32_t partition, uint32_t worker,
                                       const wire::Header& header, const Buffer& answer) const {
  const uint64_t own = count_of(plan, partition, answer, worker);
  const uint64_t version = version_of(plan, partition, answer);
  if (own == header.step + 1 && version > kept_[partition].version) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(plan.member_name(header.sender), " sent ", describe(plan, header),
                                                 " with ", own, " contributions of this worker and ", version,
                                                 " in all; expected ", header.step + 1, " and more than ",
                                                 kept_[partition].version));
}

void AccumulatedAnswers::keep(const plan::Plan& plan, uint32_t partition, Buffer answer) {
  Kept& kept = kept_[partition];
  bytes_ += answer.size() - kept.answer.size();
  kept.version = version_of(plan, partition, answer);
  kept.answer = std::move(answer);
}

}  // namespace gleaner::session
