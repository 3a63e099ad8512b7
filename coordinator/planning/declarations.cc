#include "coordinator/planning/declarations.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/differing_operations.h"
#include "common/base/status_macros.h"
#include "coordinator/planning/advice.h"

namespace gleaner::coordinator {
namespace {

std::string shape(const plan::Tensor& tensor) {
  std::string text = plan::elements_of(tensor);
  if (tensor.accumulates) absl::StrAppend(&text, ", accumulated");
  if (tensor.staleness != plan::kUnbounded) absl::StrAppend(&text, " with a staleness of ", tensor.staleness);
  if (!tensor.group.empty()) absl::StrAppend(&text, ", of workers ", absl::StrJoin(tensor.group, ", "));
  return text;
}

bool is_alike(const plan::Tensor& a, const plan::Tensor& b) {
  return a.elements == b.elements && a.type == b.type && a.accumulates == b.accumulates && a.staleness == b.staleness &&
         a.group == b.group && a.memory == b.memory;
}

}  // namespace

absl::Status Declarations::declare(uint32_t rank, const std::vector<plan::Tensor>& tensors, absl::Duration now) {
  for (const plan::Tensor& tensor : tensors) GLN_RETURN_IF_ERROR(declare(rank, tensor, now));
  // Skips agreed tensors at the front.
  while (pending_begin_ < pending_.size() && entries_.at(pending_[pending_begin_]).by.empty()) ++pending_begin_;
  if (pending_begin_ == pending_.size()) {
    pending_.clear();
    pending_begin_ = 0;
  }
  return absl::OkStatus();
}

absl::Status Declarations::declare(uint32_t rank, const plan::Tensor& tensor, absl::Duration now) {
  if (!has(tensor, rank) || (!tensor.group.empty() && tensor.group.back() >= roster_.ranks() / roster_.local_ranks())) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "': ", roster_.name(rank), " declared ",
                                                   shape(tensor), "; expected workers of the job, itself among them"));
  }
  auto [found, is_new] = entries_.try_emplace(tensor.name);
  Entry& entry = found->second;
  if (is_new) {
    entry = {.tensor = tensor, .first_rank = rank, .first_time = now, .by = std::vector<bool>(roster_.ranks())};
    pending_.push_back(tensor.name);
  }
  if (!is_alike(entry.tensor, tensor)) return differs(entry, rank, tensor);
  if (entry.by.empty() || entry.by[rank]) return absl::OkStatus();
  entry.by[rank] = true;
  if (rank == (tensor.group.empty() ? 0 : tensor.group.front() * roster_.local_ranks())) {
    entry.tensor.priority = tensor.priority;
    entry.order = next_order_++;
  }
  if (++entry.declared == ranks_of(tensor)) {
    entry.by = {};
    agreed_.push_back(tensor.name);
  }
  return absl::OkStatus();
}

absl::Status Declarations::differs(const Entry& entry, uint32_t rank, const plan::Tensor& tensor) const {
  if (entry.by.empty() || entry.by[rank]) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "': ", roster_.name(rank),
                                                   " declared it twice, with ", shape(entry.tensor), " and with ",
                                                   shape(tensor), "; a name stands for one tensor"));
  }
  const std::string first = roster_.name(entry.first_rank), other = roster_.name(rank);
  const std::string difference = this->difference(entry, rank);
  const auto optimizer = optimizer_of_roll(tensor);
  if (optimizer.has_value() && optimizer_of_roll(entry.tensor).has_value() &&
      entry.tensor.elements != tensor.elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", *optimizer, "' has ", parameters_of_roll(entry.tensor.elements, roster_.ranks()),
                     " parameters on ", first, " and ", parameters_of_roll(tensor.elements, roster_.ranks()), " on ",
                     other, difference, "; ", advice_about(tensor)));
  }
  return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "': ", first, " declared ",
                                                 shape(entry.tensor), ", ", other, " declared ", shape(tensor),
                                                 difference, "; every rank must declare it alike"));
}

// Names the first other tensor, by priority, that only one of two ranks has declared: "; only worker 1 has tensor 'x'".
// Empty: there is none.
std::string Declarations::difference(const Entry& differing, uint32_t other) const {
  const uint32_t one = differing.first_rank;
  const Entry* first = nullptr;
  for (size_t i = pending_begin_; i < pending_.size(); ++i) {
    const Entry& entry = entries_.at(pending_[i]);
    if (entry.by.empty() || entry.by[one] == entry.by[other]) continue;
    if (!has(entry.tensor, one) || !has(entry.tensor, other)) continue;
    const bool is_roll = optimizer_of_roll(entry.tensor).has_value();  // it is declared last
    if (&entry != &differing && !is_roll && (first == nullptr || entry.tensor.priority < first->tensor.priority))
      first = &entry;
  }
  if (first == nullptr) return "";
  return absl::StrCat("; only ", roster_.name(first->by[one] ? one : other), " has tensor '", first->tensor.name, "'");
}

const plan::Tensor* Declarations::pending() const {
  const Entry* entry = oldest();
  return entry == nullptr ? nullptr : &entry->tensor;
}

bool Declarations::has_declared(uint32_t rank, const std::string& tensor) const {
  const auto found = entries_.find(tensor);
  return found != entries_.end() && (found->second.by.empty() || found->second.by[rank]);
}

bool Declarations::contributes(uint32_t rank, const std::string& tensor) const {
  const auto found = entries_.find(tensor);
  return found == entries_.end() || has(found->second.tensor, rank);
}

bool Declarations::has(const plan::Tensor& tensor, uint32_t rank) const {
  return tensor.has(rank / roster_.local_ranks());
}

uint32_t Declarations::ranks_of(const plan::Tensor& tensor) const {
  return tensor.group.empty() ? roster_.ranks() : static_cast<uint32_t>(tensor.group.size()) * roster_.local_ranks();
}

absl::Status Declarations::operate(uint32_t rank, const std::vector<plan::Operation>& operations) {
  for (const plan::Operation& operation : operations) {
    const auto found = entries_.find(operation.tensor);
    if (found == entries_.end()) continue;
    Entry& entry = found->second;
    if (!entry.op.has_value()) {
      entry.op = operation.op;
      entry.op_rank = rank;
    } else if (*entry.op != operation.op) {
      return differing_operations(operation.tensor, {}, {roster_.name(entry.op_rank), *entry.op},
                                  {roster_.name(rank), operation.op});
    }
  }
  return absl::OkStatus();
}

void Declarations::adopt(const std::vector<plan::Tensor>& tensors) {
  for (const plan::Tensor& tensor : tensors) entries_[tensor.name] = {.tensor = tensor, .declared = roster_.ranks()};
}

std::vector<plan::Tensor> Declarations::take_agreed() {
  std::vector<const Entry*> entries;
  for (const std::string& name : agreed_) entries.push_back(&entries_.at(name));
  agreed_.clear();
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) { return a->order < b->order; });
  std::vector<plan::Tensor> tensors;
  tensors.reserve(entries.size());
  for (const Entry* entry : entries) tensors.push_back(entry->tensor);
  return tensors;
}

const Declarations::Entry* Declarations::oldest() const {
  return pending_begin_ == pending_.size() ? nullptr : &entries_.at(pending_[pending_begin_]);
}

std::optional<absl::Duration> Declarations::oldest_pending() const {
  const Entry* entry = oldest();
  return entry == nullptr ? std::nullopt : std::optional(entry->first_time);
}

std::vector<uint32_t> Declarations::missing() const {
  std::vector<uint32_t> ranks;
  const Entry* entry = oldest();
  for (uint32_t rank = 0; entry != nullptr && rank < roster_.ranks(); ++rank) {
    if (has(entry->tensor, rank) && !entry->by[rank]) ranks.push_back(rank);
  }
  return ranks;
}

std::string Declarations::describe_pending() const {
  const Entry* entry = oldest();
  if (entry == nullptr) return "no tensor is pending";
  return absl::StrCat("tensor '", entry->tensor.name, "' was declared by ", roster_.name(entry->first_rank),
                      " but not by ", roster_.names(missing()));
}

}  // namespace gleaner::coordinator
