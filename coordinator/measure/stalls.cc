#include "coordinator/measure/stalls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kAnswerWithin = absl::Seconds(1);
constexpr size_t kMostNamed = 4;  // ranks whose awaited members a message names

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

// Returns a rank that waits for the tensor to ask about next. The first such tensor is the one that some rank has
// waited for longest; then the others follow in the order of their names.
std::optional<uint32_t> Stalls::next_to_ask_about(absl::Duration now) const {
  std::optional<uint32_t> first, next;
  for (uint32_t rank = 0; rank < waiting_.size(); ++rank) {
    const std::optional<OldestPushPull>& waiting = waiting_[rank];
    if (!waiting.has_value() || roster_[rank].state != Seat::State::kPresent) continue;
    if (now - waiting->since < ask_after_) continue;
    if (!first.has_value() || waiting->tensor < waiting_[*first]->tensor) first = rank;
    if (waiting->tensor <= last_) continue;
    if (!next.has_value() || waiting->tensor < waiting_[*next]->tensor) next = rank;
  }
  if (last_.empty()) return first.has_value() ? longest() : std::nullopt;
  return next.has_value() ? next : first;
}

std::optional<std::string> Stalls::ask(absl::Duration now) {
  if (asked_.has_value() || now < next_) return std::nullopt;
  const std::optional<uint32_t> rank = next_to_ask_about(now);
  if (!rank.has_value()) {
    last_.clear();
    return std::nullopt;
  }
  asked_ = waiting_[*rank];
  last_ = asked_->tensor;
  asked_at_ = now;
  begun_.assign(begun_.size(), std::nullopt);
  return asked_->tensor;
}

std::optional<std::string> Stalls::warning(absl::Duration now) {
  if (!asked_.has_value() || (!is_answered() && now - asked_at_ < kAnswerWithin)) return std::nullopt;
  std::vector<uint32_t> behind;
  for (uint32_t rank = 0; rank < begun_.size(); ++rank) {
    if (is_behind(rank)) behind.push_back(rank);
  }
  std::optional<std::string> text;
  for (uint32_t rank = 0; rank < waiting_.size(); ++rank) {
    if (!waits(rank)) continue;
    behind_[rank] = {asked_->tensor, asked_->step, behind};
    if (text.has_value()) continue;
    text = describe(absl::StrCat(" since ", absl::FormatDuration(absl::Floor(now - asked_->since, absl::Seconds(1)))));
    if (!lasting().empty() && asked_->tensor != warned_of_.tensor) continue;
    warned_of_ = *asked_;
    warned_ = describe("");
  }
  asked_.reset();
  if (!text.has_value()) return std::nullopt;
  next_ = now + ask_every_;
  if (now < next_warning_) return std::nullopt;
  next_warning_ = now + kWarnEvery;
  return text;
}

std::vector<uint32_t> Stalls::waits_for(uint32_t rank, absl::Duration now, absl::Duration time) const {
  const std::optional<OldestPushPull>& waiting = waiting_[rank];
  const Behind& behind = behind_[rank];
  const bool is_known = roster_[rank].state == Seat::State::kPresent && waiting.has_value() &&
                        waiting->tensor == behind.tensor && waiting->step == behind.step;
  if (!is_known || now - waiting->since < time) return {};
  return behind.ranks;
}

std::optional<Stalls::Circle> Stalls::circle(absl::Duration now, absl::Duration time) const {
  const std::optional<uint32_t> longest = this->longest();
  if (!longest.has_value() || now - waiting_[*longest]->since < time) return std::nullopt;
  // Rules out ranks that wait only for ranks which are ruled out, or for none, until nothing changes. The remaining
  // ranks are in a circle or lead to one.
  std::vector<std::vector<uint32_t>> edges;
  std::vector<bool> may_be(waiting_.size(), true);
  for (uint32_t rank = 0; rank < waiting_.size(); ++rank) edges.push_back(waits_for(rank, now, time));
  const auto next_of = [&](uint32_t rank) {
    return std::ranges::find_if(edges[rank], [&](uint32_t other) { return may_be[other] && other != rank; });
  };
  for (bool any = true; any;) {
    any = false;
    for (uint32_t rank = 0; rank < edges.size(); ++rank) {
      if (may_be[rank] && next_of(rank) == edges[rank].end()) {
        may_be[rank] = false;
        any = true;
      }
    }
  }
  const auto start = std::ranges::find(may_be, true);
  if (start == may_be.end()) return std::nullopt;
  auto rank = static_cast<uint32_t>(start - may_be.begin());
  std::vector<uint32_t> path;
  for (; std::ranges::find(path, rank) == path.end(); rank = *next_of(rank)) path.push_back(rank);
  path.erase(path.begin(), std::ranges::find(path, rank));  // drops the ranks that lead to the circle
  Circle circle{path.front(), ""};
  for (const uint32_t each : path) {
    absl::StrAppend(&circle.text, circle.text.empty() ? "" : "; ", roster_.name(each), " waits since ",
                    absl::FormatDuration(absl::Floor(now - waiting_[each]->since, absl::Seconds(1))), " for tensor '",
                    waiting_[each]->tensor, "', step ", waiting_[each]->step + 1, ", which ",
                    roster_.name(*next_of(each)), " has not begun");
  }
  return circle;
}

bool Stalls::waits(uint32_t rank) const { return waits(rank, *asked_); }

bool Stalls::waits(uint32_t rank, const OldestPushPull& push_pull) const {
  const std::optional<OldestPushPull>& waiting = waiting_[rank];
  return roster_[rank].state == Seat::State::kPresent && waiting.has_value() && waiting->tensor == push_pull.tensor &&
         waiting->step == push_pull.step;
}

bool Stalls::is_behind(uint32_t rank) const { return begun_[rank].has_value() && *begun_[rank] <= asked_->step; }

bool Stalls::is_answered() const {
  for (uint32_t rank = 0; rank < begun_.size(); ++rank) {
    if (roster_[rank].state == Seat::State::kPresent && !begun_[rank].has_value()) return false;
  }
  return true;
}

std::string Stalls::lasting() const {
  if (warned_.empty()) return "";
  for (uint32_t rank = 0; rank < waiting_.size(); ++rank) {
    if (waits(rank, warned_of_)) return warned_;
  }
  return "";
}

// Says whose frames the waiting ranks await. A number is no member's if the report is older than the members.
std::string Stalls::describe_awaited(const std::vector<uint32_t>& waiting) const {
  std::vector<std::string> awaited;
  for (const uint32_t rank : waiting) {
    const std::vector<uint32_t>& members = waiting_[rank]->members;
    if (members.empty() || members.front() >= roster_.members()) continue;
    awaited.push_back(absl::StrCat(roster_.name(rank), awaited.empty() ? " awaits frames of " : " of ",
                                   roster_.name(roster_.seat_of_member(members.front()))));
    if (awaited.size() == kMostNamed) break;
  }
  return absl::StrCat(": the network", awaited.empty() ? " or a summer is slow" : ", or a member, is slow; ",
                      absl::StrJoin(awaited, ", "));
}

std::string Stalls::describe(const std::string& since) const {
  std::vector<uint32_t> waiting, behind, silent;
  uint64_t least = asked_->step;
  for (uint32_t rank = 0; rank < begun_.size(); ++rank) {
    if (waits(rank)) {
      waiting.push_back(rank);
    } else if (!begun_[rank].has_value()) {
      silent.push_back(rank);
    } else if (is_behind(rank)) {
      behind.push_back(rank);
      least = std::min(least, *begun_[rank]);
    }
  }
  std::string text = absl::StrCat("tensor '", asked_->tensor, "', step ", asked_->step + 1, ": ",
                                  roster_.names(waiting), waiting.size() == 1 ? " waits" : " wait", since, " for ");
  if (behind.empty() && silent.empty()) {
    return absl::StrCat(text, "the sum, which every rank has begun", describe_awaited(waiting));
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
