#include "comm-lib/encoding/encoding_stage.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>
#include <variant>

#include "comm-lib/pipeline/ids.h"
#include "common/base/mix.h"
#include "common/base/status_macros.h"

namespace gleaner::encoding {
namespace {

bool are_finite(const std::byte* values, size_t count) {
  bool others = false;
  for (size_t i = 0; i < count; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i * sizeof(float), sizeof bits);
    others |= (~bits & 0x7F800000) == 0;
  }
  return !others;
}

}  // namespace

absl::Status EncodingStage::on_event(const pipeline::Event& event) {
  if (const auto* welcome = std::get_if<pipeline::Welcome>(&event)) worker_ = welcome->member;
  if (!std::holds_alternative<pipeline::Commit>(event)) return absl::OkStatus();
  parts_.extend(*plan());
  piece_of_.resize(parts_.first_of(static_cast<uint32_t>(parts_.tensors())));
  encoded_.resize(piece_of_.size());
  compressed_.resize(parts_.tensors());
  return absl::OkStatus();
}

void EncodingStage::start(pipeline::PieceRequest request) {
  const auto& tensors = plan()->tensors;
  const bool is_compressed = request.tensor < tensors.size() && tensors[request.tensor].memory.has_value();
  if (!is_compressed) return next().start(std::move(request));
  if (const absl::Status status = begin(request); !status.ok()) finish(request.id, status);
}

absl::Status EncodingStage::begin(pipeline::PieceRequest& request) {
  GLN_RETURN_IF_ERROR(exchange::check_piece_in_memory(*plan(), request));
  GLN_RETURN_IF_ERROR(allocate(request.tensor));
  // The piece has the parts that begin at its partitions; a tensor without elements has one part without partitions.
  const uint32_t end_of_partitions = request.first + exchange::partitions_of(*plan(), request);
  const uint32_t end_of_tensor = parts_.first_of(request.tensor) + parts_.count_of(request.tensor);
  uint32_t first = parts_.first_of(request.tensor);
  while (first + 1 < end_of_tensor && parts_[first].first < request.first) ++first;
  uint32_t end = first + 1;
  while (end < end_of_tensor && parts_[end].first < end_of_partitions) ++end;
  const uint32_t piece = pieces_.take();
  std::fill(piece_of_.begin() + first, piece_of_.begin() + end, piece);
  pieces_[piece] = {std::move(request), parts_[first].offset, first, end, end - first, absl::OkStatus()};
  waiting_.reserve(pieces_.size());
  wait_for_turn(piece);
  return absl::OkStatus();
}

absl::Status EncodingStage::allocate(uint32_t tensor) {
  Compressed& compressed = compressed_[tensor];
  const plan::Tensor& shape = plan()->tensors[tensor];
  if (compressed.memory != nullptr || shape.elements == 0) return absl::OkStatus();
  compressed.name = fnv1a<uint64_t>(shape.name);
  const uint64_t contributions = plan()->encoding(shape).contribution_bytes(shape.bytes());
  // Residuals after a result of top-k need the contribution.
  const bool are_apart = contributions != shape.bytes() || is_top_k(shape.type);
  const uint64_t bytes = contributions + (are_apart ? shape.bytes() : 0);
  compressed.memory.reset(new std::byte[bytes]);
  compressed.results = compressed.memory.get() + (are_apart ? contributions : 0);
  if (shape.memory->feeds_back) compressed.residual = std::make_unique<float[]>(shape.memory->elements);
  if (shape.memory->momentum > 0) compressed.momentum = std::make_unique<float[]>(shape.memory->elements);
  return memory_.add({compressed.memory.get(), bytes});
}

void EncodingStage::wait_for_turn(uint32_t piece) {
  const auto order = [this](uint32_t index) {
    const pipeline::PieceRequest& request = pieces_[index].request;
    return std::tuple(plan()->tensors[request.tensor].priority, request.tensor, request.first);
  };
  const auto is_more_urgent = [&](uint32_t a, uint32_t b) { return order(a) < order(b); };
  waiting_.insert(std::ranges::upper_bound(waiting_, piece, is_more_urgent), piece);
}

EncodingStage::Range EncodingStage::values_of_part(uint32_t part) const {
  return {parts_[part].offset / sizeof(float), parts_[part].bytes / sizeof(float)};
}

// The last element of a tensor may have fewer values.
EncodingStage::Range EncodingStage::elements_of(uint32_t part) const {
  const auto [first, count] = values_of_part(part);
  const DataType type = tensor_of(part).type;
  return {elements_for(type, first), elements_for(type, count)};
}

MutableBytes EncodingStage::contribution(uint32_t part) const {
  const size_t element = size_of(plan()->encoding(tensor_of(part)).contribution);
  const auto [first, count] = elements_of(part);
  return {compressed_of(part).memory.get() + first * element, count * element};
}

MutableBytes EncodingStage::result(uint32_t part) const {
  const size_t element = size_of(tensor_of(part).type);
  const auto [first, count] = elements_of(part);
  return {compressed_of(part).results + first * element, count * element};
}

// Returns the key of the part's random numbers. All ranks choose the same places, and round independently.
uint32_t EncodingStage::key_of(uint32_t part) const {
  const plan::Tensor& tensor = tensor_of(part);
  const uint64_t worker = is_random_k(tensor.type) ? 0 : worker_ + uint64_t{1};
  uint64_t key = splitmix64(tensor.memory->seed) ^ compressed_of(part).name;
  key = splitmix64(key) ^ encoded_[part];
  return static_cast<uint32_t>(splitmix64(splitmix64(key) ^ worker) >> 32);
}

void EncodingStage::encode_next() {
  if (waiting_.empty()) return;
  Piece& piece = pieces_[waiting_.front()];
  const uint32_t part = piece.next++;
  if (piece.next == piece.end) waiting_.erase(waiting_.begin());
  encode(part);
}

void EncodingStage::encode(uint32_t part) {
  const Piece& piece = pieces_[piece_of_[part]];
  const plan::Tensor& tensor = tensor_of(part);
  const std::byte* from = piece.request.input.bytes().data() + (parts_[part].offset - piece.offset);
  const MutableBytes to = contribution(part);
  ++encoded_[part];
  const Range values = values_of_part(part);
  if (is_block(tensor.type)) {
    const auto of_part = [&](const auto& array) { return array == nullptr ? nullptr : array.get() + values.first; };
    kernels_.encode(plan()->encoding(tensor).contribution,
                    {.values = from,
                     .count = values.count,
                     .residual = of_part(compressed_of(part).residual),
                     .momentum = of_part(compressed_of(part).momentum),
                     .factor = tensor.memory->momentum,
                     .key = key_of(part),
                     .first_block = values.first / kBlockValues},
                    to.data());
  } else {
    counts_.losses += kernels_.narrow(tensor.type, from, to.data(), values.count);
  }
  counts_.elements += values.count;
  pipeline::PieceRequest encoded{{.id = pipeline::kEncodingBit | part,
                                  .tensor = parts_[part].tensor,
                                  .op = piece.request.op,
                                  .input = to.empty() ? Buffer() : memory_.borrow(to),
                                  .output = result(part),
                                  .first = parts_[part].first,
                                  .count = parts_[part].count},
                                 {},
                                 piece.request.number};
  next().start(std::move(encoded));
}

// The result of the stage below.
void EncodingStage::on_done(uint64_t id, const absl::Status& status) {
  if ((id & pipeline::kEncodingBit) == 0) return finish(id, status);
  const auto part = static_cast<uint32_t>(id & ~pipeline::kEncodingBit);
  const uint32_t index = piece_of_[part];
  Piece& piece = pieces_[index];
  if (piece.missing == 0) return;  // fail() has ended the piece
  piece.status.Update(status);
  if (status.ok()) decode(part);
  if (--piece.missing > 0) return;
  const uint64_t above = piece.request.id;
  const absl::Status result = std::exchange(piece.status, absl::OkStatus());
  piece.request = {};
  pieces_.give_back(index);
  finish(above, result);
}

void EncodingStage::decode(uint32_t part) {
  const Piece& piece = pieces_[piece_of_[part]];
  const plan::Tensor& tensor = tensor_of(part);
  const std::byte* from = result(part).data();
  std::byte* to = piece.request.output.data() + (parts_[part].offset - piece.offset);
  const Range values = values_of_part(part);
  if (!is_block(tensor.type)) return kernels_.sum(tensor.type, tensor.memory->type, {&from, 1}, to, values.count, 1);
  kernels_.decode(tensor.type, from, {to, values.count, key_of(part), values.first / kBlockValues});
  const auto& residual = compressed_of(part).residual;
  if (residual != nullptr && is_top_k(tensor.type)) {
    kernels::put_back(tensor.type, contribution(part).data(), from, values.count, residual.get() + values.first);
  }
  forget_overflows(part, to);
}

// Restarts residuals and momentum at zero in blocks whose sum has overflowed, or they would make the next sums
// overflow.
void EncodingStage::forget_overflows(uint32_t part, const std::byte* sums) {
  float* const residual = compressed_of(part).residual.get();
  float* const momentum = compressed_of(part).momentum.get();
  if (residual == nullptr && momentum == nullptr) return;
  const auto [first, count] = values_of_part(part);
  for (size_t i = 0; i < count; i += kBlockValues) {
    const size_t in_block = std::min<size_t>(kBlockValues, count - i);
    if (are_finite(sums + i * sizeof(float), in_block)) continue;
    for (float* const kept : {residual, momentum}) {
      if (kept != nullptr) std::fill_n(kept + first + i, in_block, 0.0F);
    }
  }
}

void EncodingStage::fail(const absl::Status&) {
  waiting_.clear();
  for (uint32_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].missing == 0) continue;
    pieces_[i] = {};
    pieces_.give_back(i);
  }
}

}  // namespace gleaner::encoding
