#include "operator/coordinator/lobby.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "operator/coordinator/stalls.h"

namespace gleaner::coordinator {
namespace {

// Those that did not say by what number they go get the smallest that nobody has.
void number(std::vector<Lobby::Guest>& summers) {
  const auto is_taken = [&summers](uint32_t index) {
    return std::any_of(summers.begin(), summers.end(),
                       [index](const Lobby::Guest& guest) { return guest.identity.index == index; });
  };
  uint32_t next = 0;
  for (Lobby::Guest& summer : summers) {
    if (summer.identity.index.has_value()) continue;
    while (is_taken(next)) ++next;
    summer.identity.index = next;
  }
}

}  // namespace

Lobby::Lobby(const Options& options, absl::Duration now)
    : options_(options), first_(options.workers), expected_summers_(options.summers), since_(now) {}

absl::Status Lobby::enter(StreamId stream, const Identity& identity) {
  if (identity.role == Role::kSummer) {
    GLN_RETURN_IF_ERROR(check(identity, "a summer"));
    std::erase_if(summers_, [&](const Guest& guest) {
      return identity.index.has_value() && guest.identity.index == identity.index;
    });
    summers_.push_back({stream, identity});
    return absl::OkStatus();
  }
  if (!identity.index.has_value() || identity.local_size != options_.local_ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker with local rank ", identity.local_rank, " of ", identity.local_size,
                     identity.index.has_value() ? "" : " and without an index", "; this job has ", options_.local_ranks,
                     " rank per worker, each with an index of its own; check GLEANER_WORKER and GLEANER_LOCAL_SIZE"));
  }
  GLN_RETURN_IF_ERROR(check(identity, absl::StrCat("worker ", *identity.index)));
  const auto [found, added] = workers_.try_emplace(*identity.index, Guest{stream, identity});
  if (!added) {
    return absl::UnavailableError(
        absl::StrCat("worker ", *identity.index, " waits for the next round already; is the same one started twice?"));
  }
  return absl::OkStatus();
}

bool Lobby::leave(StreamId stream) {
  const auto has_left = [stream](const Guest& guest) { return guest.stream == stream; };
  for (const auto& [worker, guest] : workers_) {
    if (!has_left(guest)) continue;
    give_up(worker);
    workers_.erase(worker);
    return true;
  }
  return std::erase_if(summers_, has_left) > 0;
}

void Lobby::gather(std::vector<uint32_t> workers, uint32_t summers, uint32_t done, absl::Duration now) {
  expected_ = std::move(workers);
  expected_summers_ = summers;
  done_ += done;
  first_ = 0;
  since_ = now;
  next_warning_ = now;
  workers_here_.reset();
}

void Lobby::give_up(uint32_t worker) { std::erase(expected_, worker); }

bool Lobby::is_expected(uint32_t worker) const {
  return std::find(expected_.begin(), expected_.end(), worker) != expected_.end();
}

std::vector<uint32_t> Lobby::missing() const {
  std::vector<uint32_t> missing;
  std::copy_if(expected_.begin(), expected_.end(), std::back_inserter(missing),
               [this](uint32_t worker) { return !workers_.contains(worker); });
  return missing;
}

uint32_t Lobby::least() const { return options_.min_workers > done_ ? options_.min_workers - done_ : 1; }

std::optional<Lobby::Party> Lobby::take(absl::Duration now) {
  const absl::Duration patience = first_ > 0 ? options_.start_timeout : options_.regroup_timeout;
  const bool all_here = missing().empty() && workers() >= std::max(first_, least());
  if (!all_here && (now - since_ < patience || workers() < least())) {
    workers_here_.reset();
    return std::nullopt;
  }
  // Summers can come later as well; those of the first round are part of what was asked for.
  if (!workers_here_.has_value()) workers_here_ = now;
  const absl::Duration for_summers = first_ > 0 ? patience : options_.summer_timeout;
  if (summers_.size() < expected_summers_ && now - *workers_here_ < for_summers && now - since_ < patience) {
    return std::nullopt;
  }
  Party party;
  std::vector<uint32_t> order;
  for (const uint32_t worker : expected_) {
    if (workers_.contains(worker)) order.push_back(worker);
  }
  const auto survivors = static_cast<ptrdiff_t>(order.size());
  for (const auto& [worker, guest] : workers_) {
    if (!is_expected(worker)) order.push_back(worker);
  }
  std::sort(order.begin() + survivors, order.end());
  if (order.size() > options_.max_workers) order.resize(options_.max_workers);
  for (const uint32_t worker : order) party.workers.push_back(workers_.extract(worker).mapped());
  party.summers = take_summers();
  number(party.summers);
  return party;
}

std::optional<std::string> Lobby::warning(absl::Duration now) {
  if (streams().empty() || now - since_ < kStallAfter || now < next_warning_) return std::nullopt;
  next_warning_ = now + kMissingEvery;
  // Without enough workers nothing begins, however long the others are waited for.
  const bool enough = workers() >= least() && first_ == 0;
  const absl::Duration limit = enough ? options_.regroup_timeout : options_.start_timeout;
  return absl::StrCat("waiting for ", waits_for(), ": ",
                      absl::FormatDuration(absl::Floor(now - since_, absl::Seconds(1))), " of at most ",
                      absl::FormatDuration(limit));
}

std::string Lobby::waits_for() const {
  if (const std::vector<uint32_t> missing = this->missing(); !missing.empty()) {
    return absl::StrCat(missing.size() == 1 ? "worker " : "workers ", absl::StrJoin(missing, ", "), " to come back");
  }
  const uint32_t wanted = std::max(first_, least());
  if (workers() < wanted) return absl::StrCat("workers, ", workers(), " of ", wanted, " are here");
  return absl::StrCat("summers, ", summers_.size(), " of ", expected_summers_, " are here");
}

absl::Status Lobby::hopeless(absl::Duration now) const {
  if (now - since_ <= options_.start_timeout || workers() >= least()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      workers(), workers() == 1 ? " worker is" : " workers are", " there, of at least ", least(), ", ",
      absl::FormatDuration(options_.start_timeout), first_ > 0 ? " after the start" : " after a worker was lost"));
}

std::vector<Lobby::Guest> Lobby::take_summers() { return std::exchange(summers_, {}); }

std::vector<StreamId> Lobby::streams() const {
  std::vector<StreamId> streams;
  for (const auto& [worker, guest] : workers_) streams.push_back(guest.stream);
  for (const Guest& guest : summers_) streams.push_back(guest.stream);
  return streams;
}

std::vector<Lobby::Guest> Lobby::take_all() {
  std::vector<Guest> all = take_summers();
  for (const auto& [worker, guest] : std::exchange(workers_, {})) all.push_back(guest);
  return all;
}

}  // namespace gleaner::coordinator
