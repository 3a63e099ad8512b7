#include "comm-lib/session/checks.h"

#include <algorithm>
#include <array>
#include <span>

#include "absl/strings/str_cat.h"

namespace gleaner::session {
std::string describe(const plan::Plan& plan, const wire::Header& header) {
  return absl::StrCat(wire::name_of(header.type), " of tensor ", plan.tensors[header.tensor].name, " partition ",
                      header.partition, " step ", header.step);
}

absl::Status check_peer(const plan::Plan& plan, uint64_t job, uint32_t owner, const wire::Header& header) {
  constexpr std::array kAnswers = {wire::FrameType::kResult,  wire::FrameType::kDefer,  wire::FrameType::kFetch,
                                   wire::FrameType::kRelease, wire::FrameType::kRefuse, wire::FrameType::kCommitted};
  if (std::ranges::find(kAnswers, header.type) == kAnswers.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected RESULT, DEFER, FETCH, RELEASE, REFUSE or COMMITTED from member ", owner, ", got ",
                     wire::name_of(header.type)));
  }
  if (owner >= plan.members.size() || header.sender != owner || header.job != job) {
    return absl::InvalidArgumentError(absl::StrCat("expected a frame of job ", job, " from member ", owner, ", one of ",
                                                   plan.members.size(), "; got one of job ", header.job,
                                                   " from member ", header.sender));
  }
  return absl::OkStatus();
}

absl::Status check_exists(const plan::Plan& plan, uint32_t owner, const wire::Header& header) {
  if (header.tensor >= plan.tensors.size() || header.partition >= plan.partitions_of(header.tensor).size()) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(owner), " names tensor ", header.tensor,
                                                   " partition ", header.partition, ", which the plan of epoch ",
                                                   plan.epoch, " does not have"));
  }
  return absl::OkStatus();
}

absl::Status check_frame(const plan::Plan& plan, uint32_t owner, const wire::Header& header, const Buffer& payload) {
  const plan::Partition& partition = plan.partitions_of(header.tensor)[header.partition];
  if (partition.owner != owner) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(owner), " sent ", describe(plan, header),
                                                   ", whose owner is ", plan.member_name(partition.owner)));
  }
  const uint32_t expected = header.type == wire::FrameType::kResult ? plan.answer_bytes(partition) : 0;
  if (payload.size() != expected || header.payload_bytes != expected) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(owner), " sent ", describe(plan, header), " with ",
                                                   payload.size(), " bytes (header: ", header.payload_bytes,
                                                   "), expected ", expected));
  }
  return absl::OkStatus();
}

}  // namespace gleaner::session
