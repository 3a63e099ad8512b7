#include "comm-lib/local/stage/local_stage.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::local {

LocalStage::LocalStage(const Env& env, const Options& options, const kernels::Kernels* kernels,
                       trace::Recorder* recorder)
    : env_(env), options_(options), kernels_(kernels), recorder_(recorder) {}

LocalStage::~LocalStage() = default;

absl::Status LocalStage::on_event(const pipeline::Event& event) {
  if (const auto* welcome = std::get_if<pipeline::Welcome>(&event)) return open(welcome->secret);
  if (std::holds_alternative<pipeline::Commit>(event)) return register_tensors();
  return absl::OkStatus();
}

absl::Status LocalStage::open(const wire::Secret& secret) {
  if (group_ != nullptr && options_.secret == secret) return absl::OkStatus();
  group_ = nullptr;
  connected_ = false;
  memory_ = {};
  pieces_ = {};
  requests_.clear();
  options_.secret = secret;
  GLN_ASSIGN_OR_RETURN(group_, Group::create(env_, options_, kernels_, this));
  return absl::OkStatus();
}

absl::Status LocalStage::register_tensors() {
  if (group_ == nullptr) return absl::OkStatus();
  std::vector<TensorShape> added;
  for (const pipeline::Piece& piece : pieces_.extend(*plan())) {
    const plan::Tensor& tensor = plan()->tensors[piece.tensor];
    const DataType type = tensor.memory.has_value() ? tensor.memory->type : tensor.type;
    added.push_back({piece.bytes / size_of(type), type, tensor.name});
  }
  requests_.resize(pieces_.tensors());
  return group_->register_tensors(added);
}

void LocalStage::start(pipeline::PieceRequest request) {
  const MutableBytes input = request.input.bytes();
  const uint32_t first = pieces_.first_of(request.tensor);
  const uint32_t count = pieces_.count_of(request.tensor);
  for (uint32_t i = first; i < first + count; ++i) {
    const pipeline::Piece& piece = pieces_[i];
    const absl::Status status = group_->start(i, request.op, input.subspan(piece.offset, piece.bytes),
                                              request.output.subspan(piece.offset, piece.bytes), request.access);
    // An error concerns the whole tensor, so the first piece shows it and no other piece has started.
    if (!status.ok()) return finish(request.id, status);
  }
  requests_[request.tensor] = {request.id, request.number, count, absl::OkStatus()};
}

void LocalStage::on_reduced(uint32_t piece, ReduceOp op, MutableBytes sum, MutableBytes result) {
  const pipeline::Piece& reduced = pieces_[piece];
  if (reduced.accumulates) op = ReduceOp::kAccumulate;  // the local ranks' inputs were summed first
  // The sums share memory that stays as long as the group, so transports register it once. If that fails, they copy.
  if (!memory_.covers(sum)) memory_.add(group_->sums_beside(piece)).IgnoreError();
  next().start({{piece, reduced.tensor, op, memory_.borrow(sum), result, reduced.first, reduced.count}});
}

// The result of the stage below.
void LocalStage::on_done(uint64_t piece, const absl::Status& status) {
  group_->publish(static_cast<uint32_t>(piece), status);
}

// The result that this rank has copied from the group.
void LocalStage::on_done(uint32_t piece, const absl::Status& status) {
  TensorRequest& request = requests_[pieces_[piece].tensor];
  request.status.Update(status);
  if (--request.missing == 0) finish(request.id, std::exchange(request.status, absl::OkStatus()));
}

void LocalStage::on_gpu(uint32_t piece, trace::Kind point) {
  const pipeline::Piece& worked_on = pieces_[piece];
  recorder_->record(point, requests_[worked_on.tensor].number, worked_on.tensor, worked_on.first, 0,
                    static_cast<uint32_t>(worked_on.bytes));
}

void LocalStage::poll() {
  if (group_ != nullptr) group_->poll();
}

void LocalStage::fail(const absl::Status& status) {
  if (group_ != nullptr) group_->fail(status);
}

std::string LocalStage::describe_waiting() const {
  if (!connected_) return absl::StrCat("the other local ranks of worker ", options_.worker);
  return "local rank 0 of this worker";
}

}  // namespace gleaner::local
