#include "comm-lib/local/requests.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::local {
namespace {

// The least budget that a portion of work uses up. This limits the number of small tensors per turn.
constexpr size_t kSmallestCharge = 4096;

bool overlap(ConstBytes a, ConstBytes b) {
  return a.data() != b.data() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

}  // namespace

Requests::Requests(uint32_t local_rank, uint32_t local_size, const kernels::Kernels* kernels)
    : local_rank_(local_rank), local_size_(local_size), kernels_(kernels), sources_(local_size) {}

void Requests::add(std::span<const TensorShape> tensors) {
  for (const TensorShape& shape : tensors) {
    Tensor tensor;
    tensor.name = shape.name;
    tensor.type = shape.type;
    tensor.bytes = shape.elements * size_of(shape.type);
    tensors_.push_back(tensor);
  }
  for (TensorQueue& queue : queues_) queue.reserve(tensors_.size());
}

void Requests::attach(const Layout& layout, std::byte* memory) {
  for (size_t i = 0; i < layout.offsets.size(); ++i) {
    const auto id = static_cast<uint32_t>(layout.first + i);
    Tensor& tensor = tensors_[id];
    tensor.slots = memory + layout.offsets[i].slot;
    tensor.slot_distance = layout.slot_bytes;
    tensor.sum_memory = memory + layout.sums_begin() + layout.offsets[i].sum;
    tensor.result_memory = memory + layout.sums_begin() + layout.offsets[i].result;
    if (tensor.stage == Stage::kStarted) enter(id, Stage::kCopyingIn, {0, tensor.bytes});
  }
}

MutableBytes Requests::sum_of(uint32_t tensor) const {
  return {tensors_[tensor].sum_memory, tensors_[tensor].in_sum(tensors_[tensor].bytes)};
}

MutableBytes Requests::result_of(uint32_t tensor) const {
  return {tensors_[tensor].result_memory, tensors_[tensor].bytes};
}

absl::Status Requests::start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output) {
  if (tensor >= tensors_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor, " is not registered; ", tensors_.size(), " tensors are"));
  }
  Tensor& found = tensors_[tensor];
  if (input.size() != found.bytes || output.size() != found.bytes) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor, " has ", found.bytes, " bytes, got ",
                                                   input.size(), " bytes of input and ", output.size(), " of output"));
  }
  if (overlap(input, output)) {
    return absl::InvalidArgumentError(absl::StrCat("input and output of tensor ", tensor,
                                                   " overlap in part: they must be the same memory or not overlap"));
  }
  if (!is_valid(op)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor, ": unknown op ", static_cast<int>(op)));
  }
  if (found.stage != Stage::kIdle) {
    return absl::FailedPreconditionError(
        absl::StrCat("tensor ", tensor, " is still in flight: wait for its last push_pull first"));
  }
  ++in_flight_;
  found.op = op;
  found.input = input;
  found.output = output;
  found.stage = Stage::kStarted;
  if (found.slots != nullptr) enter(tensor, Stage::kCopyingIn, {0, found.bytes});
  return absl::OkStatus();
}

absl::Status Requests::reduce(uint32_t tensor, uint64_t step) {
  if (tensor >= tensors_.size() || tensors_[tensor].stage != Stage::kReady || tensors_[tensor].step != step) {
    return unexpected("REDUCE", tensor, step);
  }
  enter(tensor, Stage::kReducing, slice_of(tensors_[tensor].bytes, local_size_, local_rank_));
  return absl::OkStatus();
}

absl::Status Requests::finish(uint32_t tensor, uint64_t step, absl::Status result) {
  if (tensor >= tensors_.size() || tensors_[tensor].step != step ||
      (tensors_[tensor].stage != Stage::kReady && tensors_[tensor].stage != Stage::kReduced)) {
    return unexpected("RESULT", tensor, step);
  }
  Tensor& found = tensors_[tensor];
  found.result = std::move(result);
  enter(tensor, Stage::kCopyingOut, {0, found.result.ok() ? found.bytes : 0});
  return absl::OkStatus();
}

absl::Status Requests::unexpected(absl::string_view message, uint32_t tensor, uint64_t step) const {
  return absl::InvalidArgumentError(
      absl::StrCat("local rank 0 sent ", message, " for tensor ", tensor, " at step ", step,
                   tensor < tensors_.size()
                       ? absl::StrCat(", which is at step ", tensors_[tensor].step, " and does not expect it now")
                       : absl::StrCat("; there are ", tensors_.size(), " tensors")));
}

void Requests::enter(uint32_t tensor, Stage stage, Slice work) {
  Tensor& found = tensors_[tensor];
  found.stage = stage;
  found.progress = work.begin;
  found.end = work.end;
  queues_[stage == Stage::kReducing ? kSums : stage == Stage::kCopyingIn ? kCopiesIn : kCopiesOut].push(tensor);
}

bool Requests::has_work() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const TensorQueue& queue) { return !queue.empty(); });
}

bool Requests::needs_others() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const Tensor& tensor) {
    return tensor.stage != Stage::kIdle && tensor.stage != Stage::kCopyingOut;
  });
}

std::optional<Requests::Finished> Requests::advance(size_t& budget) {
  while (budget > 0) {
    const auto queue =
        std::find_if(queues_.begin(), queues_.end(), [](const TensorQueue& each) { return !each.empty(); });
    if (queue == queues_.end()) return std::nullopt;
    const uint32_t tensor = queue->front();
    const size_t touched = std::max(do_portion(tensors_[tensor], budget), kSmallestCharge);
    budget -= std::min(budget, touched);
    if (tensors_[tensor].progress < tensors_[tensor].end) continue;
    queue->pop();
    return leave(tensor);
  }
  return std::nullopt;
}

// Does as much of the stage's work as the budget allows, at least one cache line. Returns the bytes touched.
size_t Requests::do_portion(Tensor& tensor, size_t budget) {
  const size_t streams = tensor.stage == Stage::kReducing ? local_size_ + tensor.in_sum(kLine) / kLine : 2;
  const size_t most = std::max(kLine, budget / streams / kLine * kLine);
  const size_t bytes = std::min(most, tensor.end - tensor.progress);
  if (bytes == 0) return 0;
  const size_t at = std::exchange(tensor.progress, tensor.progress + bytes);
  if (tensor.stage == Stage::kCopyingIn) {
    std::memcpy(tensor.slot(local_rank_) + at, tensor.input.data() + at, bytes);
  } else if (tensor.stage == Stage::kCopyingOut) {
    std::memcpy(tensor.output.data() + at, tensor.result_memory + at, bytes);
  } else {
    for (uint32_t rank = 0; rank < local_size_; ++rank) sources_[rank] = tensor.slot(rank) + at;
    kernels_->sum(tensor.type, accumulator_of(tensor.type), sources_, tensor.sum_memory + tensor.in_sum(at),
                  bytes / size_of(tensor.type), 1);
  }
  return bytes * streams;
}

Requests::Finished Requests::leave(uint32_t tensor) {
  Tensor& found = tensors_[tensor];
  Finished finished{found.stage, tensor, found.step, found.op, absl::OkStatus()};
  switch (found.stage) {
    case Stage::kCopyingIn:
      found.stage = Stage::kReady;
      break;
    case Stage::kReducing:
      found.stage = Stage::kReduced;
      break;
    default:
      finished.result = std::exchange(found.result, absl::OkStatus());
      found.stage = Stage::kIdle;
      found.input = {};
      found.output = {};
      ++found.step;
      --in_flight_;
  }
  return finished;
}

}  // namespace gleaner::local
