#include "comm-lib/local/layout.h"

#include <openssl/evp.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

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
  const size_t most_area = kMostBytes / (ranks + size_t{1}) - page;
  Layout layout{first, ranks, {}, 0, digest_of(tensors, first)};
  layout.offsets.reserve(tensors.size());
  for (const TensorShape& tensor : tensors) {
    const size_t id = first + layout.offsets.size();
    if (!is_valid(tensor.type)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", id, " has the unknown data type ", static_cast<int>(tensor.type)));
    }
    if (tensor.elements > (most_area - layout.area_bytes) / size_of(tensor.type)) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", id, " of ", tensor.elements,
                                                     " elements and those before it need more than the ", kMostBytes,
                                                     " bytes that ", ranks, " local ranks can share"));
    }
    layout.offsets.push_back(layout.area_bytes);
    layout.area_bytes =
        std::min(most_area, round_up(layout.area_bytes + tensor.elements * size_of(tensor.type), kLine));
  }
  // At least a page, because an empty file can't be mapped.
  layout.area_bytes = std::max(page, round_up(layout.area_bytes, page));
  return layout;
}

}  // namespace gleaner::local
