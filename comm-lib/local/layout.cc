#include "comm-lib/local/layout.h"

#include <openssl/evp.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/accumulator.h"

namespace gleaner::local {
namespace {

constexpr size_t kMostBytes = size_t{1} << 46;  // limit of a memory file: half of the memory that a process can map

Digest digest_of(std::span<const TensorShape> tensors, uint32_t first) {
  std::vector<uint64_t> words;
  words.reserve(2 * tensors.size() + 1);
  words.push_back(first);
  for (const TensorShape& tensor : tensors) {
    words.push_back(tensor.elements);
    words.push_back(static_cast<uint64_t>(tensor.type));
  }
  Digest digest;
  EVP_Digest(words.data(), words.size() * sizeof(uint64_t), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

}  // namespace

absl::StatusOr<Layout> lay_out(std::span<const TensorShape> tensors, uint32_t first, uint32_t ranks) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // The area of the sums has at most three times the bytes of a slot's: twice for partial sums of a wider type, and
  // once for results.
  const size_t most_slot = kMostBytes / (ranks + size_t{3}) - page;
  Layout layout{first, ranks, {}, 0, 0, digest_of(tensors, first)};
  layout.offsets.reserve(tensors.size());
  for (const TensorShape& tensor : tensors) {
    const size_t id = first + layout.offsets.size();
    if (!is_valid(tensor.type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", id, " has the unknown data type ", static_cast<int>(tensor.type)));
    }
    if (tensor.elements > (most_slot - layout.slot_bytes) / size_of(tensor.type)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", id, " of ", tensor.elements,
                                                     " elements and those before it need more than the ", kMostBytes,
                                                     " bytes that ", ranks, " local ranks can share"));
    }
    const DataType sum_type = accumulator_of(tensor.type);
    const size_t bytes = round_up(tensor.elements * size_of(tensor.type), kLine);
    const size_t sum_bytes = round_up(tensor.elements * size_of(sum_type), kLine);
    const bool is_apart = sum_type != tensor.type;
    layout.offsets.push_back({layout.slot_bytes, layout.sums_bytes, layout.sums_bytes + (is_apart ? sum_bytes : 0)});
    layout.slot_bytes = std::min(most_slot, layout.slot_bytes + bytes);
    layout.sums_bytes += sum_bytes + (is_apart ? bytes : 0);
  }
  // At least a page, because empty memory can't be mapped or registered.
  layout.slot_bytes = std::max(page, round_up(layout.slot_bytes, page));
  layout.sums_bytes = std::max(page, round_up(layout.sums_bytes, page));
  return layout;
}

}  // namespace gleaner::local
