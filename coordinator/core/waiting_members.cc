#include "coordinator/core/waiting_members.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/first_few.h"
#include "common/base/status_macros.h"
#include "coordinator/measure/stalls.h"

namespace gleaner::coordinator {
namespace {

// Gives each summer without an index the smallest free one.
void number(std::vector<WaitingMembers::Member>& summers) {
  const auto is_taken = [&summers](uint32_t index) {
    return std::any_of(summers.begin(), summers.end(),
                       [index](const WaitingMembers::Member& member) { return member.identity.index == index; });
  };
  uint32_t next = 0;
  for (WaitingMembers::Member& summer : summers) {
    if (summer.identity.index.has_value()) continue;
    while (is_taken(next)) ++next;
    summer.identity.index = next;
  }
}

}  // namespace

WaitingMembers::WaitingMembers(const Options& options, absl::Duration now)
    : options_(options),
      workers_of_first_round_(options.workers),
      expected_summers_(options.summers),
      wait_began_(now) {}

absl::StatusOr<std::optional<StreamId>> WaitingMembers::add(StreamId stream, const Identity& identity) {
  if (identity.role == Role::kSummer) {
    GLN_RETURN_IF_ERROR(check(identity, "a summer"));
    return add_summer(stream, identity);
  }
  if (!identity.index.has_value() || identity.local_size != options_.local_ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker with local rank ", identity.local_rank, " of ", identity.local_size,
                     identity.index.has_value() ? "" : " and without an index", "; this job has ", options_.local_ranks,
                     " rank per worker, each with an index of its own; check GLEANER_WORKER and GLEANER_LOCAL_SIZE"));
  }
  GLN_RETURN_IF_ERROR(check(identity, absl::StrCat("worker ", *identity.index)));
  const auto [found, added] = workers_.try_emplace(*identity.index, Member{stream, identity});
  if (!added) {
    return absl::UnavailableError(
        absl::StrCat("worker ", *identity.index, " waits for the next round already; was it started twice?"));
  }
  return std::nullopt;
}

std::optional<StreamId> WaitingMembers::add_summer(StreamId stream, const Identity& identity) {
  const auto earlier = std::find_if(summers_.begin(), summers_.end(), [&](const Member& member) {
    return identity.index.has_value() && member.identity.index == identity.index;
  });
  std::optional<StreamId> replaced;
  if (earlier != summers_.end()) {
    replaced = earlier->stream;
    summers_.erase(earlier);
  }
  summers_.push_back({stream, identity});
  return replaced;
}

bool WaitingMembers::remove(StreamId stream) {
  const auto has_left = [stream](const Member& member) { return member.stream == stream; };
  for (const auto& [worker, member] : workers_) {
    if (!has_left(member)) continue;
    expect_no_longer(worker);
    workers_.erase(worker);
    return true;
  }
  return std::erase_if(summers_, has_left) > 0;
}

void WaitingMembers::begin_wait(std::vector<uint32_t> workers, uint32_t summers, uint32_t done, absl::Duration now) {
  expected_ = std::move(workers);
  expected_summers_ = summers;
  finished_workers_ += done;
  workers_of_first_round_ = 0;
  wait_began_ = now;
  next_warning_ = now;
  workers_complete_since_.reset();
}

void WaitingMembers::expect_no_longer(uint32_t worker) { std::erase(expected_, worker); }

void WaitingMembers::on_worker_finished(uint32_t worker) {
  expect_no_longer(worker);
  ++finished_workers_;
}

bool WaitingMembers::is_expected(uint32_t worker) const {
  return std::find(expected_.begin(), expected_.end(), worker) != expected_.end();
}

std::vector<uint32_t> WaitingMembers::missing() const {
  std::vector<uint32_t> missing;
  std::copy_if(expected_.begin(), expected_.end(), std::back_inserter(missing),
               [this](uint32_t worker) { return !workers_.contains(worker); });
  return missing;
}

uint32_t WaitingMembers::workers_needed() const {
  return options_.min_workers > finished_workers_ ? options_.min_workers - finished_workers_ : 1;
}

std::optional<WaitingMembers::NextRound> WaitingMembers::take(absl::Duration now) {
  const absl::Duration patience = workers_of_first_round_ > 0 ? options_.start_timeout : options_.regroup_timeout;
  const bool all_here = missing().empty() && workers() >= std::max(workers_of_first_round_, workers_needed());
  if (!all_here && (now - wait_began_ < patience || workers() < workers_needed())) {
    workers_complete_since_.reset();
    return std::nullopt;
  }
  // Summers can also join a round that has begun, so later rounds wait for them only briefly. The first round waits
  // longer, since the user asked for that number.
  if (!workers_complete_since_.has_value()) workers_complete_since_ = now;
  const absl::Duration for_summers = workers_of_first_round_ > 0 ? patience : options_.summer_timeout;
  if (summers_.size() < expected_summers_ && now - *workers_complete_since_ < for_summers &&
      now - wait_began_ < patience) {
    return std::nullopt;
  }
  NextRound next;
  std::vector<uint32_t> order;
  for (const uint32_t worker : expected_) {
    if (workers_.contains(worker)) order.push_back(worker);
  }
  const auto survivors = static_cast<ptrdiff_t>(order.size());
  for (const auto& [worker, member] : workers_) {
    if (!is_expected(worker)) order.push_back(worker);
  }
  std::sort(order.begin() + survivors, order.end());
  if (order.size() > options_.max_workers) order.resize(options_.max_workers);
  for (const uint32_t worker : order) next.workers.push_back(workers_.extract(worker).mapped());
  next.summers = take_summers();
  number(next.summers);
  return next;
}

std::optional<std::string> WaitingMembers::warning(absl::Duration now) {
  if (streams().empty() || now - wait_began_ < kStallAfter || now < next_warning_) return std::nullopt;
  next_warning_ = now + kMissingEvery;
  // With too few workers no round begins after regroup_timeout; the limit is start_timeout.
  const bool enough = workers() >= workers_needed() && workers_of_first_round_ == 0;
  const absl::Duration limit = enough ? options_.regroup_timeout : options_.start_timeout;
  return absl::StrCat("waiting for ", waits_for(), ": ",
                      absl::FormatDuration(absl::Floor(now - wait_began_, absl::Seconds(1))), " of at most ",
                      absl::FormatDuration(limit));
}

std::string WaitingMembers::waits_for() const {
  if (const std::vector<uint32_t> missing = this->missing(); !missing.empty()) {
    return absl::StrCat(missing.size() == 1 ? "worker " : "workers ", first_few(missing), " to come back");
  }
  const uint32_t wanted = std::max(workers_of_first_round_, workers_needed());
  if (workers() < wanted) return absl::StrCat("workers, ", workers(), " of ", wanted, " have joined");
  return absl::StrCat("summers, ", summers_.size(), " of ", expected_summers_, " have joined");
}

absl::Status WaitingMembers::check_workers(absl::Duration now) const {
  if (now - wait_began_ <= options_.start_timeout || workers() >= workers_needed()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(workers(), workers() == 1 ? " worker has" : " workers have", " joined, of at least ",
                   workers_needed(), ", ", absl::FormatDuration(options_.start_timeout),
                   workers_of_first_round_ > 0 ? " after the start" : " after a worker was lost"));
}

std::vector<WaitingMembers::Member> WaitingMembers::take_summers() { return std::exchange(summers_, {}); }

std::vector<StreamId> WaitingMembers::streams() const {
  std::vector<StreamId> streams;
  for (const auto& [worker, member] : workers_) streams.push_back(member.stream);
  for (const Member& member : summers_) streams.push_back(member.stream);
  return streams;
}

std::vector<WaitingMembers::Member> WaitingMembers::take_all() {
  std::vector<Member> all = take_summers();
  for (const auto& [worker, member] : std::exchange(workers_, {})) all.push_back(member);
  return all;
}

}  // namespace gleaner::coordinator
