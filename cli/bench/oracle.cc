#include "cli/bench/oracle.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"
#include "cli/bench/data.h"
#include "common/base/accumulator.h"
#include "common/base/status_macros.h"
#include "common/kernels/float_formats.h"

namespace gleaner::cli {
namespace {

constexpr size_t kChunkBytes = 16384;              // a multiple of every type's size
constexpr size_t kPartialBytes = 2 * kChunkBytes;  // of a chunk's partial sum; twice for fp32 sums of 16-bit values

template <typename Stored>
Stored element_at(ConstBytes bytes, size_t at) {
  Stored stored;
  std::memcpy(&stored, bytes.data() + at, sizeof(stored));
  return stored;
}

std::string element_text(DataType type, ConstBytes bytes, size_t at) {
  switch (type) {
    case DataType::kFloat32: {
      const auto bits = element_at<uint32_t>(bytes, at);
      return absl::StrFormat("0x%08x (%.9g)", bits, std::bit_cast<float>(bits));
    }
    case DataType::kFloat64: {
      const auto bits = element_at<uint64_t>(bytes, at);
      return absl::StrFormat("0x%016x (%.17g)", bits, std::bit_cast<double>(bits));
    }
    case DataType::kFloat16: {
      const auto bits = element_at<uint16_t>(bytes, at);
      return absl::StrFormat("0x%04x (%.5g)", bits, kernels::float16_to_float32(bits));
    }
    case DataType::kBFloat16: {
      const auto bits = element_at<uint16_t>(bytes, at);
      return absl::StrFormat("0x%04x (%.4g)", bits, kernels::bfloat16_to_float32(bits));
    }
    case DataType::kInt32: {
      const auto bits = element_at<uint32_t>(bytes, at);
      return absl::StrFormat("0x%08x (%d)", bits, static_cast<int32_t>(bits));
    }
  }
  return "";
}

}  // namespace

std::optional<Mismatch> first_mismatch(DataType type, ConstBytes expected, ConstBytes got) {
  if (std::memcmp(expected.data(), got.data(), got.size()) == 0) return std::nullopt;
  for (size_t at = 0; at < got.size(); at += size_of(type)) {
    if (std::memcmp(&expected[at], &got[at], size_of(type)) == 0) continue;
    return Mismatch{.element = at / size_of(type),
                    .expected = element_text(type, expected, at),
                    .got = element_text(type, got, at)};
  }
  return std::nullopt;
}

absl::StatusOr<BenchOracle> BenchOracle::make(uint64_t seed, uint32_t workers, uint32_t local_ranks) {
  GLN_ASSIGN_OR_RETURN(const kernels::Kernels scalar, kernels::Kernels::choose("scalar"));
  return BenchOracle(seed, workers, local_ranks, scalar);
}

BenchOracle::BenchOracle(uint64_t seed, uint32_t workers, uint32_t local_ranks, const kernels::Kernels& scalar)
    : seed_(seed),
      workers_(workers),
      local_ranks_(local_ranks),
      scalar_(scalar),
      memory_(workers * kPartialBytes + local_ranks * kChunkBytes),
      expected_(kChunkBytes) {
  for (uint32_t worker = 0; worker < workers; ++worker) of_workers_.push_back(&memory_[worker * kPartialBytes]);
  for (uint32_t local = 0; local < local_ranks; ++local) {
    of_local_.push_back(&memory_[workers * kPartialBytes + local * kChunkBytes]);
  }
}

void BenchOracle::sum(DataType type, uint64_t step, uint64_t first, MutableBytes result) {
  for (size_t at = 0; at < result.size(); at += kChunkBytes) {
    const size_t size = std::min(kChunkBytes, result.size() - at);
    sum_chunk(type, step, first + at / size_of(type), result.subspan(at, size));
  }
}

void BenchOracle::sum_chunk(DataType type, uint64_t step, uint64_t first, MutableBytes result) {
  const size_t elements = result.size() / size_of(type);
  const DataType partial = accumulator_of(type);
  for (uint32_t worker = 0; worker < workers_; ++worker) {
    for (uint32_t local = 0; local < local_ranks_; ++local) {
      const MutableBytes of_rank(&memory_[workers_ * kPartialBytes + local * kChunkBytes], result.size());
      BenchData(seed_, step, worker * local_ranks_ + local).fill(type, first, of_rank);
    }
    scalar_.sum(type, partial, of_local_, &memory_[worker * kPartialBytes], elements, 1);
  }
  scalar_.sum(partial, type, of_workers_, result.data(), elements, 1);
}

std::optional<Mismatch> BenchOracle::check(DataType type, uint64_t step, uint64_t first, ConstBytes got) {
  for (size_t at = 0; at < got.size(); at += kChunkBytes) {
    const size_t size = std::min(kChunkBytes, got.size() - at);
    const MutableBytes expected(expected_.data(), size);
    sum_chunk(type, step, first + at / size_of(type), expected);
    if (auto mismatch = first_mismatch(type, expected, got.subspan(at, size))) {
      mismatch->element += at / size_of(type);
      return mismatch;
    }
  }
  return std::nullopt;
}

}  // namespace gleaner::cli
