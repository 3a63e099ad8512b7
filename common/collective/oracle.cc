#include "common/collective/oracle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
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

using BlockRule = bool (Collective::*)(uint32_t rank, uint32_t block) const;

// Returns the blocks with which a rank begins or must end.
std::vector<uint32_t> blocks_of(const Schedule& schedule, BlockRule rule, uint32_t rank) {
  std::vector<uint32_t> blocks;
  for (uint32_t block = 0; block < schedule.blocks(); ++block) {
    if ((schedule.*rule)(rank, block)) blocks.push_back(block);
  }
  return blocks;
}

// Returns the number of elements that a block has.
absl::StatusOr<size_t> elements_of(const Schedule& schedule, const Vectors& inputs, size_t element_bytes) {
  if (inputs.size() != schedule.ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", inputs.size(), " inputs for ", schedule.ranks, " ranks; give one for each"));
  }
  const uint32_t first = schedule.contributor(0).value_or(0);
  const size_t blocks_of_first = blocks_of(schedule, &Collective::begins_with, first).size();
  const size_t elements = inputs[first].size() / element_bytes / blocks_of_first;
  for (uint32_t rank = 0; rank < inputs.size(); ++rank) {
    const size_t blocks = blocks_of(schedule, &Collective::begins_with, rank).size();
    if (inputs[rank].size() == blocks * elements * element_bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the input of rank ", rank, " has ", inputs[rank].size() / element_bytes, " elements, that of rank ", first,
        " has ", inputs[first].size() / element_bytes, "; give ", elements, " for each block: ", blocks * elements));
  }
  return elements;
}

// The vectors of all ranks. Moves elements between them and the inputs and results of ranks, which have the blocks with
// which a rank begins and must end.
class Memory {
 public:
  Memory(const Schedule& schedule, size_t elements, size_t element_bytes)
      : schedule_(schedule),
        elements_(elements),
        element_bytes_(element_bytes),
        vectors_(schedule.ranks, std::vector<std::byte>(elements * schedule.blocks() * element_bytes)) {}

  // Calls `move(at, i)` for the i-th block with which a rank begins or must end; `at` is its memory.
  template <typename Move>
  void for_each_block(BlockRule rule, uint32_t rank, Move move) {
    size_t i = 0;
    for (const uint32_t block : blocks_of(schedule_, rule, rank)) {
      move(vectors_[rank].data() + block * elements_ * element_bytes_, i++);
    }
  }
  std::span<std::byte> slice(uint32_t rank, const Slice& slice) {
    const uint64_t all = elements_ * schedule_.blocks();
    return std::span(vectors_[rank])
        .subspan(element_bytes_ * chunk_begin(all, schedule_.chunks, slice.first),
                 element_bytes_ * slice_elements(all, schedule_.chunks, slice));
  }

 private:
  const Schedule& schedule_;
  const size_t elements_;  // of a block
  const size_t element_bytes_;
  Vectors vectors_;  // by rank
};

absl::Status run_schedule(const Schedule& schedule, const Messages& messages, const Functions& functions,
                          size_t element_bytes, Memory& memory) {
  Vectors under_way(messages.all().size());  // by message
  return messages.run(schedule, [&](uint32_t rank, uint32_t op, uint32_t index) {
    const Message& message = messages.all()[index];
    const std::span<std::byte> own = memory.slice(rank, message.slice);
    std::vector<std::byte>& payload = under_way[index];
    if (schedule.programs[rank][op].kind == OpKind::kSend) {
      payload.assign(own.begin(), own.end());
      return absl::OkStatus();
    }
    if (message.take == Take::kReduce) {
      functions.add(own.data(), payload.data(), own.size() / element_bytes);
    } else {
      std::ranges::copy(payload, own.begin());
    }
    std::vector<std::byte>().swap(payload);
    return absl::OkStatus();
  });
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
  const size_t input_bytes = size_of(reduction.contribution);
  GLN_ASSIGN_OR_RETURN(const size_t elements, elements_of(schedule, inputs, input_bytes));
  const bool adds = schedule.adds();
  const size_t element_bytes = adds ? size_of(accumulator_of(reduction.contribution)) : input_bytes;
  Memory memory(schedule, elements, element_bytes);
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    memory.for_each_block(&Collective::begins_with, rank, [&](std::byte* at, size_t i) {
      const std::byte* const contribution = inputs[rank].data() + i * elements * input_bytes;
      if (adds && functions.widen != nullptr) return functions.widen(contribution, elements, 1, at);
      std::copy_n(contribution, elements * input_bytes, at);
    });
  }
  GLN_RETURN_IF_ERROR(run_schedule(schedule, messages, functions, element_bytes, memory));
  const size_t result_bytes = elements * (adds ? size_of(reduction.result) : input_bytes);
  Vectors results(schedule.ranks);
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    memory.for_each_block(&Collective::ends_with, rank, [&](const std::byte* at, size_t i) {
      results[rank].resize((i + 1) * result_bytes);
      std::byte* const result = results[rank].data() + i * result_bytes;
      if (adds) return functions.finish(at, elements, reduction.divisor, result);
      std::copy_n(at, result_bytes, result);
    });
  }
  return results;
}

absl::StatusOr<Vectors> execute_all_reduce(const Schedule& schedule, const Reduction& reduction, Vectors inputs) {
  GLN_ASSIGN_OR_RETURN(Vectors results, execute(schedule, reduction, std::move(inputs)));
  if (schedule.postcondition == Postcondition::kAllReduce) return results;
  if (schedule.postcondition != Postcondition::kAllGather) {
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule makes a ", name_of(schedule.postcondition), ", which ranks do not add"));
  }
  for (std::vector<std::byte>& result : results) {
    const size_t elements = result.size() / schedule.ranks / size_of(reduction.contribution);
    std::vector<std::byte> sum(elements * size_of(reduction.result));
    GLN_RETURN_IF_ERROR(add_blocks(reduction, result, elements, sum));
    result = std::move(sum);
  }
  return results;
}

absl::StatusOr<std::vector<std::vector<float>>> execute_all_reduce(const Schedule& schedule,
                                                                   const std::vector<std::vector<float>>& inputs) {
  Vectors stored;
  for (const std::vector<float>& input : inputs) {
    const ConstBytes bytes = std::as_bytes(std::span(input));
    stored.emplace_back(bytes.begin(), bytes.end());
  }
  GLN_ASSIGN_OR_RETURN(const Vectors results, execute_all_reduce(schedule, Reduction(), std::move(stored)));
  std::vector<std::vector<float>> sums;
  for (const std::vector<std::byte>& result : results) {
    std::vector<float>& sum = sums.emplace_back(result.size() / sizeof(float));
    if (!sum.empty()) std::memcpy(sum.data(), result.data(), result.size());
  }
  return sums;
}

}  // namespace gleaner::collective
