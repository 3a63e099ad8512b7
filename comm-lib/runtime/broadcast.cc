#include "comm-lib/runtime/broadcast.h"

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/broadcast_name.h"

namespace gleaner::runtime {

// Sums int32 words. Every rank but the root contributes zeros, so the sum has the root's bits. After the value, the sum
// has one word per rank with the root that the rank asks for. So if roots differ, every rank returns an error.
absl::Status broadcast(Rank& rank, const std::string& name, MutableBytes data, uint32_t root) {
  const gln_rank_info info = rank.rank_info();
  if (root >= info.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("root ", root, " is not a rank; there are ", info.ranks));
  }
  if (const absl::Status wrong = rank.check_on_host(data); !wrong.ok()) {
    return absl::Status(wrong.code(), absl::StrCat("broadcast of '", name, "': ", wrong.message()));
  }
  const size_t value_words = (data.size() + 3) / 4;
  std::vector<int32_t> words(value_words + info.ranks, 0);
  words[value_words + info.rank] = static_cast<int32_t>(root);
  if (info.rank == root && !data.empty()) std::memcpy(words.data(), data.data(), data.size());
  GLN_ASSIGN_OR_RETURN(const uint32_t tensor,
                       rank.declare({absl::StrCat(plan::kBroadcastPrefix, name), words.size(), DataType::kInt32, 0}));
  GLN_ASSIGN_OR_RETURN(const uint64_t handle, rank.push_pull(tensor, words.data(), words.data(), ReduceOp::kSum));
  GLN_ASSIGN_OR_RETURN(const Handles::Ended ended, rank.handles().wait(handle, absl::InfiniteDuration()));
  GLN_RETURN_IF_ERROR(ended.outcome);
  for (uint32_t other = 0; other < info.ranks; ++other) {
    const auto others_root = static_cast<uint32_t>(words[value_words + other]);
    if (others_root == root) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("broadcast of '", name, "': rank ", info.rank, " asks for the value of rank ", root, ", rank ",
                     other, " for that of rank ", others_root, "; every rank must name the same root"));
  }
  if (!data.empty()) std::memcpy(data.data(), words.data(), data.size());
  return absl::OkStatus();
}

}  // namespace gleaner::runtime
