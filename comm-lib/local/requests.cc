#include "comm-lib/local/requests.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/kept.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

// The least budget that a portion of work uses up. This limits the number of small tensors per turn.
constexpr size_t kSmallestCharge = 4096;

constexpr uint64_t kBeginBit = uint64_t{1} << 63;  // of the tag of the begin of a tensor's work

bool overlap(ConstBytes a, ConstBytes b) {
  return a.data() != b.data() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

// Returns what ends for traces when a GPU ends the work of a stage. `sums`: the input is in the zones.
trace::Kind end_of(Requests::Stage stage, bool sums) {
  switch (stage) {
    case Requests::Stage::kCopyingIn:
      return sums ? trace::Kind::kReduceEnded : trace::Kind::kCopyOutEnded;
    case Requests::Stage::kReducing:
      return trace::Kind::kCopyOutEnded;
    case Requests::Stage::kCopyingOut:
      return sums ? trace::Kind::kBroadcastEnded : trace::Kind::kCopyInEnded;
    default:
      return trace::Kind::kCopyInEnded;
  }
}

}  // namespace

Requests::Requests(uint32_t local_rank, uint32_t local_size, const kernels::Kernels* kernels, Events* events)
    : local_rank_(local_rank), local_size_(local_size), kernels_(kernels), events_(events), sources_(local_size) {}

void Requests::add(std::span<const TensorShape> tensors) {
  const auto first = static_cast<uint32_t>(tensors_.size());
  for (const TensorShape& shape : tensors) {
    Tensor tensor;
    tensor.name = shape.name;
    tensor.batch = first;
    tensor.type = shape.type;
    tensor.bytes = shape.elements * size_of(shape.type);
    tensors_.push_back(tensor);
  }
  for (TensorQueue& queue : queues_) queue.reserve(tensors_.size());
}

void Requests::attach(const Layout& layout, const Segment& segment) {
  if (batches_.empty()) zone_lock_ = ZoneLock::take(segment);
  std::byte* const memory = segment.data();
  // The areas that this rank's GPU uses; both begin at a page.
  gpu_.add({memory + local_rank_ * layout.slot_bytes, layout.slot_bytes});
  gpu_.add({memory + layout.sums_begin(), layout.sums_bytes});
  batches_.push_back(layout.first);
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

absl::Status Requests::start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output,
                             const device::Access& access) {
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
  if (!access.is_host()) {
    // An error ends the group, since other ranks would wait for this request.
    gpu_failure_.Update(gpu_.open(access));
    if (!gpu_failure_.ok()) return absl::OkStatus();
  }
  ++in_flight_;
  found.op = op;
  found.input = input;
  found.output = output;
  found.access = access;
  found.by_gpu = !access.is_host() && found.bytes > 0 && sums_ != nullptr && sums_->is_used(found.batch);
  found.stage = Stage::kStarted;
  if (found.slots != nullptr) enter(tensor, Stage::kCopyingIn, {0, found.bytes});
  return absl::OkStatus();
}

// The input of a tensor in flight is unchanged, so it can be copied again.
absl::Status Requests::copy(uint32_t tensor, uint64_t step) {
  if (!is_at(tensor, step, Stage::kReady) || !tensors_[tensor].by_gpu) return unexpected("COPY", tensor, step);
  tensors_[tensor].by_gpu = false;
  enter(tensor, Stage::kCopyingIn, {0, tensors_[tensor].bytes});
  return absl::OkStatus();
}

bool Requests::is_at(uint32_t tensor, uint64_t step, Stage stage) const {
  return tensor < tensors_.size() && tensors_[tensor].stage == stage && tensors_[tensor].step == step;
}

absl::Status Requests::reduce(uint32_t tensor, uint64_t step, bool by_gpu) {
  if (!is_at(tensor, step, Stage::kReady) || tensors_[tensor].by_gpu != by_gpu) {
    return unexpected("REDUCE", tensor, step);
  }
  enter(tensor, Stage::kReducing, slice_of(tensors_[tensor].bytes, local_size_, local_rank_));
  return absl::OkStatus();
}

absl::Status Requests::finish(uint32_t tensor, uint64_t step, absl::Status result, bool by_gpu) {
  const bool is_expected = is_at(tensor, step, Stage::kReady) || is_at(tensor, step, Stage::kReduced);
  if (!is_expected || (by_gpu && !tensors_[tensor].by_gpu)) return unexpected("RESULT", tensor, step);
  Tensor& found = tensors_[tensor];
  found.result = std::move(result);
  if (by_gpu) {
    const Slice slice = slice_of(found.bytes, local_size_, local_rank_);
    found.stage = Stage::kPlaced;
    if (slice.begin < slice.end) enter(tensor, Stage::kPlacing, slice);
    return absl::OkStatus();
  }
  found.by_gpu = false;
  enter(tensor, Stage::kCopyingOut, {0, found.result.ok() ? found.bytes : 0});
  return absl::OkStatus();
}

absl::Status Requests::gather(uint32_t tensor, uint64_t step) {
  if (!is_at(tensor, step, Stage::kPlaced)) return unexpected("GATHER", tensor, step);
  enter(tensor, Stage::kCopyingOut, {0, tensors_[tensor].bytes});
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
  if (!found.access.is_host() && (stage != Stage::kReducing || found.by_gpu)) {
    gpu_failure_.Update(work_by_gpu(tensor));
    return;
  }
  queues_[stage == Stage::kReducing ? kSums : stage == Stage::kCopyingIn ? kCopiesIn : kCopiesOut].push(tensor);
}

bool Requests::has_work() const {
  return !copied_.empty() || !gpu_failure_.ok() ||
         std::any_of(queues_.begin(), queues_.end(), [](const TensorQueue& queue) { return !queue.empty(); });
}

bool Requests::needs_others() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [](const Tensor& tensor) {
    return tensor.stage != Stage::kIdle && tensor.stage != Stage::kCopyingOut;
  });
}

std::optional<Requests::Finished> Requests::advance(size_t& budget) {
  if (!copied_.empty()) {
    const auto tensor = static_cast<uint32_t>(copied_.back());
    copied_.pop_back();
    return leave(tensor);
  }
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

absl::Status Requests::can_sum_on_gpu(size_t most_bytes, ConstBytes image) {
  free_kept_zones();  // of the process's groups before this one
  GLN_ASSIGN_OR_RETURN(sums_,
                       GpuSums::create(gpu_.device(), &gpu_.copier(), local_rank_, local_size_, most_bytes, image));
  return absl::OkStatus();
}

absl::StatusOr<device::SharedMemory> Requests::offer(uint32_t batch) {
  GLN_RETURN_IF_ERROR(zone_lock_.status());
  std::vector<TensorSize> sizes;
  for (size_t i = batch; i < tensors_.size() && tensors_[i].batch == batch; ++i) {
    sizes.push_back({tensors_[i].bytes, tensors_[i].type});
  }
  return sums_->offer(batch, sizes);
}

absl::Status Requests::open(uint32_t batch, uint32_t owner, const device::SharedMemory& zone) {
  return sums_->open(batch, owner, zone);
}

bool Requests::close(bool has_failed) {
  const bool have_ended = gpu_.close();
  if (sums_ == nullptr) return have_ended;
  if (!have_ended) {
    device::keep(std::move(sums_));
    if (zone_lock_.ok()) device::keep(*std::move(zone_lock_));
    return false;
  }
  std::vector<std::unique_ptr<device::DeviceMemory>> zones;
  if (has_failed) zones = sums_->take_own_zones();
  sums_ = nullptr;  // closes the other ranks' zones
  for (auto& zone : zones) {
    (*zone_lock_)->release();
    keep_zone(std::move(zone), *zone_lock_);
  }
  free_kept_zones();
  return true;
}

absl::Status Requests::work_by_gpu(uint32_t tensor) {
  Tensor& found = tensors_[tensor];
  const uint32_t in_batch = tensor - found.batch;
  WorkTags tags{.end = tensor};
  if (events_->traces_gpu()) tags.begin = kBeginBit | tensor;
  if (found.stage == Stage::kReducing) {
    tell(tensor, trace::Kind::kReduceBegun);
    const MutableBytes partial_sum{found.sum_memory + found.in_sum(found.progress),
                                   found.in_sum(found.end) - found.in_sum(found.progress)};
    return sums_->sum(found.batch, in_batch, found.input, partial_sum, tags);
  }
  if (found.stage == Stage::kPlacing) {
    tell(tensor, trace::Kind::kCopyInBegun);
    const ConstBytes slice{found.result_memory + found.progress, found.end - found.progress};
    return sums_->place(found.batch, in_batch, slice, tensor);
  }
  if (found.stage == Stage::kCopyingOut && found.by_gpu) {
    tell(tensor, trace::Kind::kBroadcastBegun);
    return sums_->gather(found.batch, in_batch, found.output, tensor);
  }
  if (found.stage == Stage::kCopyingIn && found.by_gpu) {
    return sums_->copy_in(found.batch, in_batch, found.access, found.input, tags);
  }
  if (found.stage == Stage::kCopyingIn) {
    return gpu_.to_shared(found.access, found.input, {found.slot(local_rank_), found.bytes}, tags);
  }
  tell(tensor, trace::Kind::kCopyInBegun);
  return gpu_.to_gpu({found.result_memory, found.end}, found.output.first(found.end), tensor);
}

// The request ends when the copy of its result has ended, since the result's memory is used again for the next step.
absl::Status Requests::take_copies() {
  GLN_RETURN_IF_ERROR(gpu_failure_);
  const size_t before = copied_.size();
  const absl::Status status = gpu_.take(copied_);
  const auto is_begin = [](uint64_t tag) { return (tag & kBeginBit) != 0; };
  for (size_t i = before; i < copied_.size(); ++i) {
    const auto tensor = static_cast<uint32_t>(copied_[i]);
    const Tensor& found = tensors_[tensor];
    is_begin(copied_[i]) ? tell_begin(tensor) : tell(tensor, end_of(found.stage, found.by_gpu));
  }
  std::erase_if(copied_, is_begin);
  return status;
}

void Requests::tell_begin(uint32_t tensor) {
  const Tensor& found = tensors_[tensor];
  const bool is_sum = found.stage == Stage::kReducing;
  tell(tensor, is_sum ? trace::Kind::kReduceEnded : trace::Kind::kProduced);
  tell(tensor, !is_sum && found.by_gpu ? trace::Kind::kReduceBegun : trace::Kind::kCopyOutBegun);
}

void Requests::mark_copies() {
  for (const Tensor& tensor : tensors_) {
    if (tensor.access.is_host() || tensor.stage == Stage::kIdle || tensor.stage == Stage::kStarted) continue;
    gpu_.mark(tensor.access);
    if (sums_ != nullptr) sums_->mark(tensor.access);
  }
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
  Finished finished{found.stage, tensor, found.step, found.op, found.by_gpu, absl::OkStatus()};
  switch (found.stage) {
    case Stage::kCopyingIn:
      found.stage = Stage::kReady;
      break;
    case Stage::kReducing:
      found.stage = Stage::kReduced;
      break;
    case Stage::kPlacing:
      found.stage = Stage::kPlaced;
      break;
    default:
      finished.result = std::exchange(found.result, absl::OkStatus());
      found.stage = Stage::kIdle;
      found.input = {};
      found.output = {};
      found.access = {};
      ++found.step;
      --in_flight_;
  }
  return finished;
}

}  // namespace gleaner::local
