#include "comm-lib/runtime/declarations.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

constexpr uint64_t kMaxTensorBytes = uint64_t{1} << 40;

std::string describe(const plan::Tensor& tensor) {
  std::string text = absl::StrCat(plan::elements_of(tensor), ", priority ", tensor.priority);
  if (tensor.accumulates) absl::StrAppend(&text, ", accumulated");
  if (tensor.staleness != plan::kUnbounded) absl::StrAppend(&text, " with a staleness of ", tensor.staleness);
  if (!tensor.group.empty()) absl::StrAppend(&text, ", of ranks ", absl::StrJoin(tensor.group, ", "));
  return text;
}

absl::Status check(const plan::Tensor& tensor) {
  GLN_RETURN_IF_ERROR(check_name("the tensor's name", tensor.name, plan::kMaxTensorNameBytes));
  const DataType type = tensor.memory.has_value() ? tensor.memory->type : tensor.type;
  if (!is_plain(type)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' has data type ", static_cast<int>(type),
                                                   ", which is not a value of gln_data_type"));
  }
  if (tensor.accumulates && tensor.type != DataType::kFloat32 && tensor.type != DataType::kInt32) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is ", name_of(tensor.type),
                                                   ", which can't be accumulated; only fp32 and int32 can"));
  }
  if (tensor.memory.has_value()) GLN_RETURN_IF_ERROR(plan::validate(std::span(&tensor, 1)));
  if (tensor.memory_bytes() > kMaxTensorBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor.name, "' has ", tensor.elements, " elements; expected at most 1 TiB"));
  }
  return absl::OkStatus();
}

absl::Status undeclared(uint32_t id, size_t declared) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", id, " is not declared; ", declared, " are: call gln_declare() first"));
}

}  // namespace

absl::StatusOr<uint32_t> Declarations::declare(plan::Tensor tensor) {
  if (const absl::Status status = check(tensor); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  const auto [found, added] = ids_.try_emplace(tensor.name, static_cast<uint32_t>(declared_.size()));
  if (added) {
    any_accumulates_ |= tensor.accumulates;
    declared_.push_back({std::move(tensor)});
  } else if (declared_[found->second].tensor != tensor) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "' is declared twice: first ",
                                                   describe(declared_[found->second].tensor), ", now ",
                                                   describe(tensor), "; give different tensors different names"));
  }
  return found->second;
}

absl::StatusOr<plan::Tensor> Declarations::begin(uint32_t id) {
  absl::MutexLock lock(&mutex_);
  if (id >= declared_.size()) {
    return undeclared(id, declared_.size());
  }
  Declared& declared = declared_[id];
  if (declared.in_flight) {
    return absl::FailedPreconditionError(
        absl::StrCat("tensor '", declared.tensor.name, "' is still in flight: wait for its push_pull before the next"));
  }
  declared.in_flight = true;
  return declared.tensor;
}

void Declarations::end(uint32_t id) {
  absl::MutexLock lock(&mutex_);
  declared_[id].in_flight = false;
}

Declarations::Unsent Declarations::take_unsent(uint32_t id, ReduceOp op) {
  absl::MutexLock lock(&mutex_);
  Unsent unsent;
  for (; sent_ < declared_.size(); ++sent_) unsent.tensors.push_back(declared_[sent_].tensor);
  if (!std::exchange(declared_[id].operation_sent, true)) unsent.operations.push_back({declared_[id].tensor.name, op});
  return unsent;
}

absl::StatusOr<std::string> Declarations::name_of(uint32_t id) const {
  absl::MutexLock lock(&mutex_);
  if (id < declared_.size()) return declared_[id].tensor.name;
  return undeclared(id, declared_.size());
}

bool Declarations::any_accumulates() const {
  absl::MutexLock lock(&mutex_);
  return any_accumulates_;
}

}  // namespace gleaner::runtime
