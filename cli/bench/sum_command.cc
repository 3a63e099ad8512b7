// gleaner bench sum: measures how fast this machine sums, compared with memcpy.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/bench/commands.h"
#include "cli/bench/data.h"
#include "cli/bench/tensors.h"
#include "cli/fleet_flags.h"
#include "common/base/accumulator.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/flags/groups.h"
#include "common/kernels/kernels.h"

namespace gleaner::cli {
namespace {

struct BenchSumFlags {
  std::string dtype = "fp32";
  std::string to;  // empty: the sources' type
  std::string bytes = "64MiB";
  uint32_t sources = 2;
  std::string kernel;
  double seconds = 2;
  bool residuals = false;
  bool json = false;
};

struct Rates {
  double sum = 0;     // bytes read and written per second
  double memcpy = 0;  // bytes read and written per second
};

// Owns the sources and the result of a sum.
class Operands {
 public:
  static absl::StatusOr<Operands> make(DataType type, size_t bytes, uint32_t sources, size_t result_bytes) {
    Operands made;
    for (uint32_t i = 0; i < sources; ++i) {
      GLN_ASSIGN_OR_RETURN(AlignedBytes source, AlignedBytes::make(bytes));
      BenchData(1, 0, i).fill(type, 0, {source.data(), bytes});
      made.pointers_.push_back(source.data());
      made.sources_.push_back(std::move(source));
    }
    GLN_ASSIGN_OR_RETURN(made.result_, AlignedBytes::make(std::max(bytes, result_bytes)));  // copies go there, too
    return made;
  }

  std::span<const std::byte* const> sources() const { return pointers_; }
  std::byte* result() { return result_.data(); }

 private:
  std::vector<AlignedBytes> sources_;
  std::vector<const std::byte*> pointers_;
  AlignedBytes result_;
};

// Returns the processor time of this thread, which does not include time that other processes take on a busy machine.
double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Returns whether a sum rounds one source to a narrower type, as compression does.
bool narrows(DataType type, DataType to, size_t sources) { return sources == 1 && is_narrow(to) && !is_narrow(type); }

// The types of blocks that --to takes.
constexpr DataType kBlocks[] = {kInt8Block, kInt4Block, kSignBlock, top_k(1), top_k(16), top_k(128), random_k(16)};

// `name`: one that the parser of the flags accepted.
DataType parse_result_type(const std::string& name) {
  const auto* const block = std::ranges::find(kBlocks, name, [](DataType type) { return name_of(type); });
  return block != std::end(kBlocks) ? *block : *parse_data_type(name);
}

// Returns the size of fp32 values, `bytes` of another type, in the type `to`.
size_t bytes_as(DataType to, size_t bytes, DataType type) {
  return elements_for(to, bytes / size_of(type)) * size_of(to);
}

// Alternates between sums and copies, so that both run under the same load and with the same caches.
// `residual`: by value; empty: blocks are encoded without error feedback.
Rates measure(const kernels::Kernels& kernels, DataType type, DataType to, size_t bytes, Operands& operands,
              std::vector<float> residual, double seconds) {
  constexpr size_t kLeastBytes = size_t{1} << 20;  // to sum or copy between two readings of the clock
  const size_t repeats = std::max<size_t>(1, kLeastBytes / bytes);
  const size_t sources = operands.sources().size();
  const size_t elements = bytes / size_of(type);
  const auto seconds_of = [&](const auto& work) {
    const double begin = thread_seconds();
    for (size_t i = 0; i < repeats; ++i) work(i);
    return (thread_seconds() - begin) / static_cast<double>(repeats);
  };
  std::vector<double> sums;
  std::vector<double> copies;
  const double end = thread_seconds() + seconds;
  while (thread_seconds() < end || sums.size() < 3) {
    sums.push_back(seconds_of([&](size_t) {
      if (is_block(to)) {
        float* const kept = residual.empty() ? nullptr : residual.data();
        kernels.encode(to, {.values = operands.sources()[0], .count = elements, .residual = kept}, operands.result());
      } else if (narrows(type, to, sources)) {
        kernels.narrow(to, operands.sources()[0], operands.result(), elements);
      } else {
        kernels.sum(type, to, operands.sources(), operands.result(), elements, 1);
      }
    }));
    copies.push_back(seconds_of([&](size_t i) {
      std::memcpy(operands.result(), operands.sources()[(sums.size() + i) % sources], bytes);
      asm volatile("" : : "r"(operands.result()) : "memory");  // keeps the compiler from removing the copy
    }));
  }
  const size_t moved = sources * bytes + bytes_as(to, bytes, type) + 2 * residual.size() * sizeof(float);
  return {.sum = static_cast<double>(moved) / upper_median(sums),
          .memcpy = static_cast<double>(2 * bytes) / upper_median(copies)};
}

absl::Status run_bench_sum(const BenchSumFlags& flags) {
  const std::optional<DataType> type = parse_data_type(flags.dtype);  // valid: the parser of the flags checked it
  const DataType to = flags.to.empty() ? *type : parse_result_type(flags.to);
  if (is_block(to) && (*type != DataType::kFloat32 || flags.sources != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--to ", flags.to, " encodes one source of fp32: add --dtype fp32 --sources 1"));
  }
  if (flags.residuals && !is_block(to)) {
    return absl::InvalidArgumentError("--residuals are those of blocks: add --to int8, for example");
  }
  if (!is_block(to) && to != *type &&
      (accumulator_of(to) != accumulator_of(*type) || is_narrow(to) == is_narrow(*type))) {
    return absl::InvalidArgumentError(
        absl::StrCat("sums of ", flags.dtype, " can't have the type ", flags.to,
                     "; --to takes fp16 or bf16 for fp32, fp32 for fp16 and bf16, or the type of --dtype"));
  }
  GLN_ASSIGN_OR_RETURN(const uint64_t bytes, parse_bytes(flags.bytes));
  if (bytes == 0 || bytes % size_of(*type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--bytes ", flags.bytes, " is not a whole number, above 0, of ", flags.dtype, " elements"));
  }
  GLN_ASSIGN_OR_RETURN(const kernels::Kernels kernels, kernels::Kernels::choose(flags.kernel));
  const uint64_t tensors = uint64_t{flags.sources} + 1 + (flags.residuals ? 1 : 0);
  // Compared by division, since the product of a large --bytes would wrap around.
  GLN_RETURN_IF_ERROR(check_memory(bytes > UINT64_MAX / tensors ? UINT64_MAX : bytes * tensors));
  GLN_ASSIGN_OR_RETURN(Operands operands, Operands::make(*type, bytes, flags.sources, bytes_as(to, bytes, *type)));
  std::vector<float> residual(flags.residuals ? bytes / sizeof(float) : 0);
  const Rates rates = measure(kernels, *type, to, bytes, operands, std::move(residual), flags.seconds);
  if (flags.json) {
    nlohmann::ordered_json line;
    line["dtype"] = flags.dtype;
    line["to"] = std::string(name_of(to));
    line["bytes"] = bytes;
    line["sources"] = flags.sources;
    line["residuals"] = flags.residuals;
    line["kernel"] = std::string(kernels.name());
    line["sum_bytes_per_second"] = rates.sum;
    line["memcpy_bytes_per_second"] = rates.memcpy;
    line["ratio"] = rates.sum / rates.memcpy;
    std::cout << line << "\n";
  } else {
    std::string types = to == *type ? flags.dtype : absl::StrCat(flags.dtype, " to ", flags.to);
    if (flags.residuals) types += " with residuals";
    std::cout << absl::StrFormat("%s sums of %d sources of %s %s: %s/s read and written, %.2f of memcpy's %s/s\n",
                                 std::string(kernels.name()), flags.sources, format_bytes(static_cast<double>(bytes)),
                                 types, format_bytes(rates.sum), rates.sum / rates.memcpy, format_bytes(rates.memcpy));
  }
  if (!std::cout.flush()) return absl::UnavailableError("cannot write the result to standard output");
  return absl::OkStatus();
}

}  // namespace

void add_bench_sum(flags::Command& bench, Context& context) {
  auto flags = std::make_shared<BenchSumFlags>();
  flags::Command command = bench.add_command("sum", "Measure how fast this machine sums, compared with memcpy");
  add_data_type_flag(command, flags->dtype, "Data type").show_default();
  command
      .add_text("--to", flags->to,
                "Data type of the result [default: that of the sources]; a sum of one source is what compression does")
      .one_of(
          {"fp32", "fp64", "fp16", "bf16", "int32", "int8", "int4", "sign", "top-1", "top-16", "top-128", "random-16"});
  command.add_text("--bytes", flags->bytes, "Size of each source: 64MiB or 67108864").show_default();
  command.add_number("--sources", flags->sources, "Tensors in each sum").between(1, 1024).show_default();
  flags::add_kernel(command, flags->kernel);
  command.add_number("--seconds", flags->seconds, "Seconds to measure").between(0.0, 3600.0).show_default();
  command.add_switch("--residuals", flags->residuals, "Encode blocks with error feedback");
  command.add_switch("--json", flags->json, "Print one JSON line");
  command.on_chosen([flags, &context] { context.run = [flags] { return run_bench_sum(*flags); }; });
}

}  // namespace gleaner::cli
