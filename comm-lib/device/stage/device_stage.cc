#include "comm-lib/device/stage/device_stage.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/kept.h"
#include "comm-lib/pipeline/ids.h"
#include "common/base/status_macros.h"
#include "common/plan/partitioner.h"

namespace gleaner::device {
namespace {

// Copies to the host are queued up to this limit. So a more urgent tensor overtakes all but that much, and the GPU's
// link stays busy while the I/O thread wakes up: a link of 64 GB/s carries this in 60 us.
constexpr size_t kQueuedToHostBytes = 4 << 20;
// No slot comes back for longer if ranks wait for each other, and also on a slow network, where it costs some memory.
constexpr absl::Duration kStall = absl::Milliseconds(20);
constexpr size_t kLeastRingBytes = 16 << 20;
constexpr size_t kMostRingBytes = 1 << 30;

// A piece has a slot while it is copied to the host, in flight on the network, and copied to the GPU. The ring is twice
// as large, since the slots of pieces that others overtake are held back (pinned_ring.h).
size_t ring_bytes(const plan::Plan& plan, const StageOptions& options) {
  const uint64_t window = std::max(plan::window_bytes(plan, options.worker, options.window_bytes),
                                   plan::schedule_window_bytes(plan, options.worker, options.window_bytes));
  return std::clamp<size_t>(2 * (window + 2 * kQueuedToHostBytes), kLeastRingBytes, kMostRingBytes);
}

}  // namespace

// The copies use pinned memory of this stage and memory of the program, so they end first. If they do not, because the
// program's stream never gets to the point for which they wait, the pinned memory stays allocated.
DeviceStage::~DeviceStage() {
  if (copier_ == nullptr || copier_->drain(options_.drain_timeout)) return;
  env_.log->warning("copies from the GPU have not ended; their pinned memory stays allocated", "bytes",
                    staging_->ring().size());
  keep(std::move(copier_));
  keep(std::move(staging_));
}

absl::Status DeviceStage::on_event(const pipeline::Event& event) {
  if (!std::holds_alternative<pipeline::Commit>(event)) return absl::OkStatus();
  pieces_.extend(*plan());
  tensors_.resize(pieces_.tensors());
  waiting_.reserve(pieces_.tensors());
  slots_.resize(pieces_.first_of(static_cast<uint32_t>(pieces_.tensors())));
  return absl::OkStatus();
}

void DeviceStage::start(pipeline::PieceRequest request) {
  if (request.access.is_host()) return next().start(std::move(request));
  if (const absl::Status status = begin(request); !status.ok()) finish(request.id, status);
}

absl::Status DeviceStage::begin(pipeline::PieceRequest& request) {
  GLN_RETURN_IF_ERROR(exchange::check_piece_in_memory(*plan(), request));
  const uint32_t index = request.tensor;
  Tensor& tensor = tensors_[index];
  // Slots may still be those of the last request, whose copies to the GPU go on.
  tensor = {.request = std::move(request), .missing = pieces_.count_of(index), .with_slots = tensor.with_slots};
  ++in_flight_;
  const absl::Status status = await_tensor(index);
  if (!status.ok()) give_up(status);  // other ranks would wait for this request
  return absl::OkStatus();
}

absl::Status DeviceStage::await_tensor(uint32_t index) {
  const device::Access& access = tensors_[index].request.access;
  if (copier_ == nullptr) GLN_RETURN_IF_ERROR(open(access.device));
  GLN_ASSIGN_OR_RETURN(ReportingStream* const stream, copier_->behind(access));
  return stream->notify(await({Kind::kTensor, index, tensors_[index].request.number, {}}));
}

uint32_t DeviceStage::await(const Work& work) {
  const uint32_t tag = work_.take();
  work_[tag] = work;
  return tag;
}

void DeviceStage::give_up(const absl::Status& status) {
  if (!std::exchange(failed_, true)) report_failure(status);
}

absl::Status DeviceStage::open(Device* device) {
  GLN_ASSIGN_OR_RETURN(staging_, Staging::create(device, ring_bytes(*plan(), options_)));
  GLN_ASSIGN_OR_RETURN(copier_, Copier::create(device));
  memory_.add(staging_->ring()).IgnoreError();  // without it transports register each slot by itself
  env_.log->info("opened a GPU", "device", device->info().name, "staging", staging_->ring().size());
  return absl::OkStatus();
}

// Begins pieces as far as memory and kQueuedToHostBytes allow. A tensor that has to wait for a slot does not hold up
// the less urgent ones, which may be entitled to their first slot.
void DeviceStage::feed() {
  for (size_t i = 0; i < waiting_.size() && bytes_to_host_ < kQueuedToHostBytes && !failed_;) {
    const absl::StatusOr<bool> all_begun = feed(waiting_[i]);
    if (!all_begun.ok()) return give_up(all_begun.status());
    if (*all_begun) {
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// Returns whether all pieces of the tensor have begun.
absl::StatusOr<bool> DeviceStage::feed(uint32_t index) {
  Tensor& tensor = tensors_[index];
  const uint32_t first = pieces_.first_of(index);
  while (tensor.next < pieces_.count_of(index)) {
    if (bytes_to_host_ >= kQueuedToHostBytes) return false;
    const uint32_t number = first + tensor.next;
    const pipeline::Piece& piece = pieces_[number];
    MutableBytes slot;
    if (piece.bytes > 0) {
      GLN_ASSIGN_OR_RETURN(slot, take_slot(tensor, piece.bytes));
      if (slot.empty()) return false;
      ++tensor.with_slots;
    }
    slots_[number] = slot;
    bytes_to_host_ += slot.size();
    ++tensor.next;
    const Address from = address_of(tensor.request.input.bytes().subspan(piece.offset, piece.bytes));
    const uint64_t push_pull = tensor.request.number;
    record(trace::Kind::kCopyOutBegun, push_pull, number);
    GLN_RETURN_IF_ERROR(copier_->to_host(from, slot, await({Kind::kCopyToHost, number, push_pull, slot})));
  }
  return true;
}

// The result is empty if there is no slot yet.
absl::StatusOr<MutableBytes> DeviceStage::take_slot(const Tensor& tensor, size_t bytes) {
  const absl::Duration now = env_.clock->since_start();
  const bool is_stalled = now - slot_returned_at_ >= kStall;
  GLN_ASSIGN_OR_RETURN(const Staging::Slot slot, staging_->take(bytes, is_stalled && tensor.with_slots == 0));
  if (slot.is_beside) slot_returned_at_ = now;
  return slot.memory;
}

void DeviceStage::poll() {
  if (copier_ == nullptr) return;
  tags_.clear();
  const absl::Status status = copier_->take(tags_);
  for (const uint64_t tag : tags_) {
    const Work work = work_[static_cast<uint32_t>(tag)];
    work_.give_back(static_cast<uint32_t>(tag));
    on_ended(work);
  }
  if (!status.ok()) return give_up(status);
  feed();
}

void DeviceStage::on_ended(const Work& work) {
  const trace::Kind ended = work.kind == Kind::kTensor       ? trace::Kind::kProduced
                            : work.kind == Kind::kCopyToHost ? trace::Kind::kCopyOutEnded
                                                             : trace::Kind::kCopyInEnded;
  record(ended, work.number, work.kind == Kind::kTensor ? pieces_.first_of(work.index) : work.index);
  if (work.kind == Kind::kCopyToGpu) return release(pieces_[work.index].tensor, work.slot);
  if (failed_) return;
  work.kind == Kind::kTensor ? on_ready(work.index) : on_copied_to_host(work.index, work.slot);
}

void DeviceStage::record(trace::Kind kind, uint64_t number, uint32_t index) const {
  if (recorder_ == nullptr) return;
  const pipeline::Piece& piece = pieces_[index];
  recorder_->record(kind, number, piece.tensor, piece.first, 0, static_cast<uint32_t>(piece.bytes));
}

void DeviceStage::on_ready(uint32_t tensor) {
  const auto is_more_urgent = [this](uint32_t a, uint32_t b) {
    return std::pair(plan()->tensors[a].priority, a) < std::pair(plan()->tensors[b].priority, b);
  };
  waiting_.insert(std::ranges::upper_bound(waiting_, tensor, is_more_urgent), tensor);
}

void DeviceStage::on_copied_to_host(uint32_t number, MutableBytes slot) {
  bytes_to_host_ -= slot.size();
  const pipeline::Piece& piece = pieces_[number];
  Buffer input = slot.empty() ? Buffer() : memory_.borrow(slot);
  next().start({{pipeline::kDeviceBit | number, piece.tensor, tensors_[piece.tensor].request.op, std::move(input), slot,
                 piece.first, piece.count}});
}

// The result of the stage below.
void DeviceStage::on_done(uint64_t id, const absl::Status& status) {
  if ((id & pipeline::kDeviceBit) == 0) return finish(id, status);
  if (failed_) return;
  const auto number = static_cast<uint32_t>(id & ~pipeline::kDeviceBit);
  const uint32_t index = pieces_[number].tensor;
  Tensor& tensor = tensors_[index];
  tensor.status.Update(status);
  if (!status.ok()) {
    release(index, slots_[number]);
  } else if (const absl::Status copied = copy_back(number); !copied.ok()) {
    return give_up(copied);
  }
  if (--tensor.missing == 0) end(tensor);
}

absl::Status DeviceStage::copy_back(uint32_t number) {
  const pipeline::Piece& piece = pieces_[number];
  if (piece.bytes == 0) return absl::OkStatus();
  Tensor& tensor = tensors_[piece.tensor];
  tensor.has_copies = true;
  const Address to = address_of(tensor.request.output.subspan(piece.offset, piece.bytes));
  const uint64_t push_pull = tensor.request.number;
  record(trace::Kind::kCopyInBegun, push_pull, number);
  return copier_->to_device(slots_[number], to, await({Kind::kCopyToGpu, number, push_pull, slots_[number]}));
}

void DeviceStage::release(uint32_t tensor, MutableBytes slot) {
  if (slot.empty()) return;
  --tensors_[tensor].with_slots;
  staging_->give_back(slot);
  slot_returned_at_ = env_.clock->since_start();
}

void DeviceStage::end(Tensor& tensor) {
  --in_flight_;
  if (tensor.has_copies) tensor.status.Update(copier_->record_to_device(*tensor.request.access.copied));
  tensor.request.input = {};
  finish(tensor.request.id, std::exchange(tensor.status, absl::OkStatus()));
}

// The copies that are queued go on. They are marked for the program, whose streams then use the memory after them.
void DeviceStage::fail(const absl::Status&) {
  failed_ = true;
  waiting_.clear();
  in_flight_ = 0;
  for (Tensor& tensor : tensors_) {
    if (std::exchange(tensor.missing, 0) == 0) continue;
    tensor.request.input = {};
    // If the GPU has failed, nothing is copied any more.
    if (tensor.next > 0) copier_->record_all(*tensor.request.access.copied).IgnoreError();
  }
}

}  // namespace gleaner::device
