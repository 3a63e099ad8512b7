#include "operator/coordinator/stalls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kAnswerWithin = absl::Seconds(1);

}  // namespace

void Stalls::on_begun(uint32_t rank, const std::string& tensor, uint64_t push_pulls) {
  if (asked_.has_value() && asked_->tensor == tensor) begun_[rank] = push_pulls;
}

std::optional<uint32_t> Stalls::longest() const {
  std::optional<uint32_t> longest;
  for (uint32_t rank = 0; rank < waiting_.size(); ++rank) {
    if (!waiting_[rank].has_value() || roster_[rank].state != Seat::State::kPresent) continue;
    if (!longest.has_value() || waiting_[rank]->since < waiting_[*longest]->since) longest = rank;
  }
  return longest;
}

std::optional<std::string> Stalls::ask(absl::Duration now) {
  if (asked_.has_value() || now < next_) return std::nullopt;
  const std::optional<uint32_t> rank = longest();
  if (!rank.has_value() || now - waiting_[*rank]->since < kStallAfter) return std::nullopt;
  asked_ = waiting_[*rank];
  asked_at_ = now;
  begun_.assign(begun_.size(), std::nullopt);
  return asked_->tensor;
}

std::optional<std::string> Stalls::warning(absl::Duration now) {
  if (!asked_.has_value() || (!is_answered() && now - asked_at_ < kAnswerWithin)) return std::nullopt;
  std::optional<std::string> text;
  for (uint32_t rank = 0; rank < waiting_.size() && !text.has_value(); ++rank) {
    if (waits(rank)) text = describe(now);
  }
  asked_.reset();
  if (text.has_value()) next_ = now + kWarnEvery;
  return text;
}

bool Stalls::waits(uint32_t rank) const {
  const std::optional<Waiting>& waiting = waiting_[rank];
  return roster_[rank].state == Seat::State::kPresent && waiting.has_value() && waiting->tensor == asked_->tensor &&
         waiting->step == asked_->step;
}

bool Stalls::is_answered() const {
  for (uint32_t rank = 0; rank < begun_.size(); ++rank) {
    if (roster_[rank].state == Seat::State::kPresent && !begun_[rank].has_value()) return false;
  }
  return true;
}

std::string Stalls::describe(absl::Duration now) const {
  std::vector<uint32_t> waiting, behind, silent;
  uint64_t least = asked_->step;
  for (uint32_t rank = 0; rank < begun_.size(); ++rank) {
    if (waits(rank)) {
      waiting.push_back(rank);
    } else if (!begun_[rank].has_value()) {
      silent.push_back(rank);
    } else if (*begun_[rank] <= asked_->step) {
      behind.push_back(rank);
      least = std::min(least, *begun_[rank]);
    }
  }
  std::string text = absl::StrCat("tensor '", asked_->tensor, "', step ", asked_->step + 1, ": ",
                                  roster_.names(waiting), waiting.size() == 1 ? " waits" : " wait", " since ",
                                  absl::FormatDuration(absl::Floor(now - asked_->since, absl::Seconds(1))), " for ");
  if (behind.empty() && silent.empty()) {
    return absl::StrCat(text, "the sum, which every rank has begun: the network or a summer is slow");
  }
  if (!behind.empty()) {
    absl::StrAppend(&text, roster_.names(behind), behind.size() == 1 ? ", which has" : ", which have", " begun ", least,
                    least == 1 ? " step" : " steps", " of it", behind.size() == 1 ? "" : " at least");
  }
  if (!silent.empty()) {
    absl::StrAppend(&text, behind.empty() ? "" : ", and for ", roster_.names(silent), ", which ",
                    silent.size() == 1 ? "does" : "do", " not say how far it is");
  }
  return text;
}

}  // namespace gleaner::coordinator
