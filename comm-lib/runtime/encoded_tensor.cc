#include "comm-lib/runtime/encoded_tensor.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::runtime {
namespace {

static_assert(GLN_BLOCK_ELEMENTS == kBlockValues);
static_assert(GLN_MOST_KEPT == kMostKept);

// Returns the type of contributions.
absl::StatusOr<DataType> type_of(const gln_codec& codec) {
  const int method = codec.method;
  const bool keeps = method == GLN_AS_TOP_K || method == GLN_AS_RANDOM_K;
  const bool is_known = keeps || method == GLN_AS_FLOAT16 || method == GLN_AS_BFLOAT16 ||
                        (method >= GLN_AS_INT8 && method <= GLN_AS_SIGN);
  if (!is_known) {
    return absl::InvalidArgumentError(absl::StrCat("codec.method is ", method, ", which is not a value of gln_method"));
  }
  if (keeps ? !std::has_single_bit(codec.kept) || codec.kept > kMostKept : codec.kept != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "codec.kept is ", codec.kept, "; expected ",
        keeps ? absl::StrCat("a power of two up to ", kMostKept, ", the elements kept of each ", kBlockValues)
              : "0, because only top-k and random-k keep some elements"));
  }
  if (!keeps) return DataType(method);
  return method == GLN_AS_TOP_K ? top_k(codec.kept) : random_k(codec.kept);
}

}  // namespace

absl::StatusOr<plan::Tensor> encoded_tensor(std::string name, uint64_t elements, const gln_codec& codec,
                                            int32_t priority) {
  if (codec.size != sizeof(gln_codec)) {
    return absl::InvalidArgumentError(
        absl::StrCat("codec.size is ", codec.size, ", expected ", sizeof(gln_codec), ": start from GLN_CODEC_INIT"));
  }
  absl::StatusOr<DataType> contribution = type_of(codec);
  if (!contribution.ok()) return contribution.status();
  const DataType type = *contribution == kSignBlock ? kInt8Block : *contribution;
  plan::Tensor tensor{std::move(name), elements_for(type, elements), type, priority};
  tensor.memory = {
      .elements = elements, .seed = codec.seed, .feeds_back = codec.error_feedback != 0, .momentum = codec.momentum};
  if (*contribution != type) tensor.memory->contribution = *contribution;
  return tensor;
}

}  // namespace gleaner::runtime
