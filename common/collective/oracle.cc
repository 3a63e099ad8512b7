#include "common/collective/oracle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/accumulator.h"
#include "common/base/status_macros.h"
#include "common/collective/messages.h"
#include "common/kernels/float_formats.h"
#include "common/kernels/kernels.h"

namespace gleaner::collective {
namespace {

using Vectors = std::vector<std::vector<std::byte>>;

// Each struct describes a data type: how an element is stored, the type in which elements are added, and the
// conversions between the two.
struct Float32 {
  using Stored = uint32_t;
  using Sum = float;
  static float load(uint32_t bits) { return std::bit_cast<float>(bits); }
  static uint32_t round(float sum) { return sum != sum ? kernels::kNanFloat32 : std::bit_cast<uint32_t>(sum); }
};
struct Float64 {
  using Stored = uint64_t;
  using Sum = double;
  static double load(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t round(double sum) { return sum != sum ? kernels::kNanFloat64 : std::bit_cast<uint64_t>(sum); }
};
struct Float16 {
  using Stored = uint16_t;
  using Sum = float;
  static float load(uint16_t bits) { return kernels::float16_to_float32(bits); }
  static uint16_t round(float sum) { return kernels::float32_to_float16(sum); }
};
struct BFloat16 {
  using Stored = uint16_t;
  using Sum = float;
  static float load(uint16_t bits) { return kernels::bfloat16_to_float32(bits); }
  static uint16_t round(float sum) { return kernels::float32_to_bfloat16(sum); }
};
struct Int32 {
  using Stored = uint32_t;
  using Sum = uint32_t;  // unsigned, because it wraps around
  static uint32_t load(uint32_t value) { return value; }
  static uint32_t round(uint32_t sum) { return sum; }
};

template <typename Type>
typename Type::Sum load(const std::byte* at) {
  typename Type::Stored stored;
  std::memcpy(&stored, at, sizeof(stored));
  return Type::load(stored);
}

template <typename Type>
void store(typename Type::Sum sum, std::byte* at) {
  const typename Type::Stored stored = Type::round(sum);
  std::memcpy(at, &stored, sizeof(stored));
}

template <typename Type>
void add(std::byte* own, const std::byte* received, size_t elements) {
  constexpr size_t kSize = sizeof(typename Type::Stored);
  for (size_t i = 0; i < elements; ++i) {
    store<Type>(load<Type>(own + i * kSize) + load<Type>(received + i * kSize), own + i * kSize);
  }
}

template <typename From, typename To = From>
void finish(const std::byte* sums, size_t elements, uint32_t divisor, std::byte* results) {
  for (size_t i = 0; i < elements; ++i) {
    typename From::Sum sum = load<From>(sums + i * sizeof(typename From::Stored));
    if (divisor != 1) sum /= static_cast<typename From::Sum>(divisor);
    store<To>(sum, results + i * sizeof(typename To::Stored));
  }
}

// The functions for one Reduction. Null: there are none for these types.
struct Functions {
  void (*add)(std::byte* own, const std::byte* received, size_t elements) = nullptr;
  // Divides partial sums, and rounds them to results.
  void (*finish)(const std::byte* sums, size_t elements, uint32_t divisor, std::byte* results) = nullptr;
  // Converts contributions to partial sums. Null: they have the same type.
  void (*widen)(const std::byte* contributions, size_t elements, uint32_t divisor, std::byte* sums) = nullptr;
};

Functions functions_of(const Reduction& reduction) {
  const bool is_rounded = reduction.contribution != reduction.result;
  switch (reduction.contribution) {
    case DataType::kFloat32:
      if (!is_rounded) return {add<Float32>, finish<Float32>};
      if (reduction.result == DataType::kFloat16) return {add<Float32>, finish<Float32, Float16>};
      if (reduction.result == DataType::kBFloat16) return {add<Float32>, finish<Float32, BFloat16>};
      return {};
    case DataType::kFloat64:
      return is_rounded ? Functions() : Functions{add<Float64>, finish<Float64>};
    case DataType::kFloat16:
      return is_rounded ? Functions() : Functions{add<Float32>, finish<Float32, Float16>, finish<Float16, Float32>};
    case DataType::kBFloat16:
      return is_rounded ? Functions() : Functions{add<Float32>, finish<Float32, BFloat16>, finish<BFloat16, Float32>};
    case DataType::kInt32:
      return is_rounded || reduction.divisor != 1 ? Functions() : Functions{add<Int32>, finish<Int32>};
  }
  return {};
}

absl::Status check_inputs(const Schedule& schedule, const Vectors& inputs, size_t element_bytes) {
  if (inputs.size() != schedule.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", inputs.size(), " inputs for ", schedule.ranks, " ranks; give one for each"));
  }
  const size_t elements = inputs[0].size() / element_bytes;
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    if (inputs[rank].size() == elements * element_bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat("the input of rank ", rank, " has ",
                                                   inputs[rank].size() / element_bytes,
                                                   " elements, that of rank 0 has ", elements));
  }
  return absl::OkStatus();
}

// Returns contributions as partial sums.
Vectors widened(const Functions& functions, const Vectors& contributions, size_t elements, size_t element_bytes) {
  Vectors vectors(contributions.size(), std::vector<std::byte>(elements * element_bytes));
  for (size_t rank = 0; rank < contributions.size(); ++rank) {
    functions.widen(contributions[rank].data(), elements, 1, vectors[rank].data());
  }
  return vectors;
}

// Returns the vectors with which ranks begin an all-gather: each has its contribution in its own block.
Vectors in_own_blocks(const Vectors& contributions) {
  Vectors vectors;
  for (size_t rank = 0; rank < contributions.size(); ++rank) {
    const std::vector<std::byte>& own = contributions[rank];
    std::vector<std::byte>& blocks = vectors.emplace_back(own.size() * contributions.size());
    std::ranges::copy(own, blocks.begin() + static_cast<std::ptrdiff_t>(own.size() * rank));
  }
  return vectors;
}

// Adds the blocks of a gathered vector in rank order.
absl::Status add_blocks(const Reduction& reduction, const std::vector<std::byte>& blocks, size_t elements,
                        std::vector<std::byte>& result) {
  GLN_ASSIGN_OR_RETURN(const kernels::Kernels scalar, kernels::Kernels::choose("scalar"));
  std::vector<const std::byte*> sources;
  for (size_t at = 0; at < blocks.size(); at += elements * size_of(reduction.contribution)) {
    sources.push_back(blocks.data() + at);
  }
  if (!sources.empty()) {
    scalar.sum(reduction.contribution, reduction.result, sources, result.data(), elements, reduction.divisor);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Vectors> execute(const Schedule& schedule, const Reduction& reduction, Vectors inputs) {
  GLN_ASSIGN_OR_RETURN(const Messages messages, Messages::make(schedule));
  const Functions functions = functions_of(reduction);
  if (functions.add == nullptr || reduction.divisor == 0) {
    return absl::InvalidArgumentError(absl::StrCat("contributions of ", name_of(reduction.contribution),
                                                   " have no result of ", name_of(reduction.result), " divided by ",
                                                   reduction.divisor));
  }
  GLN_RETURN_IF_ERROR(check_inputs(schedule, inputs, size_of(reduction.contribution)));
  const size_t elements = inputs[0].size() / size_of(reduction.contribution);
  const size_t all_elements = elements * schedule.blocks();
  const bool is_gathered = schedule.postcondition == Postcondition::kAllGather;
  const DataType travels = is_gathered ? reduction.contribution : accumulator_of(reduction.contribution);
  const size_t element_bytes = size_of(travels);
  if (is_gathered) {
    inputs = in_own_blocks(inputs);
  } else if (functions.widen != nullptr) {
    inputs = widened(functions, inputs, elements, element_bytes);
  }
  Vectors under_way(messages.all().size());  // by message
  const auto execute_op = [&](uint32_t rank, uint32_t op, uint32_t message) {
    const Slice slice = messages.all()[message].slice;
    std::byte* const own =
        inputs[rank].data() + element_bytes * chunk_begin(all_elements, schedule.chunks, slice.first);
    const size_t count = slice_elements(all_elements, schedule.chunks, slice);
    std::vector<std::byte>& payload = under_way[message];
    const OpKind kind = schedule.programs[rank][op].kind;
    if (kind == OpKind::kSend) {
      payload.assign(own, own + element_bytes * count);
      return absl::OkStatus();
    }
    if (kind == OpKind::kReceiveReduce) {
      functions.add(own, payload.data(), count);
    } else if (count > 0) {
      std::memcpy(own, payload.data(), payload.size());
    }
    std::vector<std::byte>().swap(payload);
    return absl::OkStatus();
  };
  GLN_RETURN_IF_ERROR(messages.run(schedule, execute_op));
  Vectors results(inputs.size(), std::vector<std::byte>(elements * size_of(reduction.result)));
  for (size_t rank = 0; rank < inputs.size(); ++rank) {
    if (is_gathered) {
      GLN_RETURN_IF_ERROR(add_blocks(reduction, inputs[rank], elements, results[rank]));
      continue;
    }
    functions.finish(inputs[rank].data(), elements, reduction.divisor, results[rank].data());
  }
  return results;
}

absl::StatusOr<std::vector<std::vector<float>>> execute(const Schedule& schedule,
                                                        const std::vector<std::vector<float>>& inputs) {
  Vectors stored;
  for (const std::vector<float>& input : inputs) {
    const ConstBytes bytes = std::as_bytes(std::span(input));
    stored.emplace_back(bytes.begin(), bytes.end());
  }
  GLN_ASSIGN_OR_RETURN(const Vectors results, execute(schedule, Reduction(), std::move(stored)));
  std::vector<std::vector<float>> sums;
  for (const std::vector<std::byte>& result : results) {
    std::vector<float>& sum = sums.emplace_back(result.size() / sizeof(float));
    if (!sum.empty()) std::memcpy(sum.data(), result.data(), result.size());
  }
  return sums;
}

}  // namespace gleaner::collective
