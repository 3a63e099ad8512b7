#include "coordinator/roster/roster.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/first_few.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/plan/model.h"

namespace gleaner::coordinator {
namespace {

std::vector<uint32_t> indices_of(const std::vector<uint32_t>& given, uint32_t count) {
  if (!given.empty()) return given;
  std::vector<uint32_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

}  // namespace

Roster::Roster(const Options& options)
    : workers_(options.workers),
      local_ranks_(options.local_ranks),
      to_come_(options.workers * options.local_ranks + options.summers),
      seats_(to_come_),
      worker_indices_(indices_of(options.indices.workers, options.workers)),
      summer_indices_(indices_of(options.indices.summers, options.summers)) {}

std::vector<uint32_t> Roster::workers_that_left() const {
  std::vector<uint32_t> left;
  for (uint32_t rank = 0; rank < ranks(); rank += local_ranks_) {
    if (seats_[rank].state == Seat::State::kLeft) left.push_back(member_of(rank));
  }
  return left;
}

uint32_t Roster::member_of(uint32_t seat) const {
  return is_summer(seat) ? workers_ + seat - ranks() : seat / local_ranks_;
}

uint32_t Roster::seat_of_member(uint32_t member) const {
  return member < workers_ ? member * local_ranks_ : ranks() + member - workers_;
}

uint32_t Roster::index_of(uint32_t seat) const {
  return is_summer(seat) ? summer_indices_[seat - ranks()] : worker_indices_[seat / local_ranks_];
}

std::optional<uint32_t> Roster::seat_of_index(Role role, uint32_t index) const {
  const std::vector<uint32_t>& indices = role == Role::kWorker ? worker_indices_ : summer_indices_;
  const auto found = std::find(indices.begin(), indices.end(), index);
  if (found == indices.end()) return std::nullopt;
  const auto place = static_cast<uint32_t>(found - indices.begin());
  return role == Role::kWorker ? place * local_ranks_ : ranks() + place;
}

bool Roster::is_part_of(const plan::Plan& plan, uint32_t seat) const {
  if (!is_summer(seat)) return true;
  const uint32_t member = member_of(seat);
  const Seat& summer = seats_[seat];
  if (member >= plan.members.size() || !plan.members[member].is_here() || summer.state == Seat::State::kVacant) {
    return false;
  }
  const uint32_t since = plan.members[member].since;
  return summer.since > 0 ? since == summer.since : since > summer.came_after;
}

bool Roster::is_any_summer_lost(const plan::Plan& plan) const {
  for (uint32_t member = plan.workers; member < plan.members.size(); ++member) {
    if (plan.members[member].is_here() && !is_part_of(plan, seat_of_member(member))) return true;
  }
  return false;
}

std::vector<uint32_t> Roster::missing() const {
  std::vector<uint32_t> seats;
  for (uint32_t seat = 0; seat < size(); ++seat) {
    if (seats_[seat].state == Seat::State::kEmpty || seats_[seat].state == Seat::State::kAway) seats.push_back(seat);
  }
  return seats;
}

std::string Roster::name(uint32_t seat) const {
  if (is_summer(seat)) return absl::StrCat("summer ", index_of(seat));
  if (local_ranks_ == 1) return absl::StrCat("worker ", index_of(seat));
  return absl::StrCat("worker ", index_of(seat), " (local rank ", seat % local_ranks_, ")");
}

std::string Roster::located(uint32_t seat) const {
  const std::string& address = seats_[seat].identity.address;
  return address.empty() ? name(seat) : absl::StrCat(name(seat), " at ", address);
}

std::string Roster::names(const std::vector<uint32_t>& seats) const {
  std::vector<std::string> names;
  names.reserve(seats.size());
  for (const uint32_t seat : seats) names.push_back(name(seat));
  return first_few(names);
}

std::optional<uint32_t> Roster::seat_of(StreamId stream) const {
  const auto found = by_stream_.find(stream);
  return found == by_stream_.end() ? std::nullopt : std::optional(found->second);
}

absl::StatusOr<uint32_t> Roster::find(const Identity& identity) const {
  if (identity.role == Role::kSummer) {
    const uint32_t summers = this->summers();
    if (identity.index.has_value()) {
      const std::optional<uint32_t> seat = seat_of_index(Role::kSummer, *identity.index);
      if (seat.has_value()) return *seat;
      return absl::InvalidArgumentError(absl::StrCat("summer ", *identity.index, " is not in this job, which has ",
                                                     summers, " (from ", summers == 0 ? 0 : summer_indices_[0], ")"));
    }
    // A summer whose stream broke gets its own seat again; its address identifies it.
    for (uint32_t seat = ranks(); seat < size(); ++seat) {
      const Seat& away = seats_[seat];
      if (away.state == Seat::State::kAway && away.identity.address == identity.address) return seat;
    }
    for (const Seat::State free : {Seat::State::kEmpty, Seat::State::kVacant}) {
      for (uint32_t seat = ranks(); seat < size(); ++seat) {
        if (seats_[seat].state == free) return seat;
      }
    }
    return absl::AlreadyExistsError(
        absl::StrCat("this job has ", counted(summers, "summer"), ", and no more can join"));
  }
  const std::optional<uint32_t> first =
      identity.index.has_value() ? seat_of_index(Role::kWorker, *identity.index) : std::nullopt;
  if (!first.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", identity.index.has_value() ? absl::StrCat(*identity.index) : "without an index",
                     " is not in this job, which has ", workers_, " (from 0); check GLEANER_WORKER"));
  }
  if (identity.local_size != local_ranks_ || identity.local_rank >= local_ranks_) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", *identity.index, " has local rank ", identity.local_rank,
                                                   " of ", identity.local_size, ", but this job has ", local_ranks_,
                                                   " per worker; check GLEANER_LOCAL_RANK and GLEANER_LOCAL_SIZE"));
  }
  return *first + identity.local_rank;
}

absl::StatusOr<uint32_t> Roster::find_again(const Identity& identity, uint32_t member, bool may_grow) {
  const auto wrong = [&](absl::string_view who) {
    return absl::InvalidArgumentError(absl::StrCat(who, " says that it is member ", member,
                                                   " of the plan, but that place belongs to another member"));
  };
  if (identity.role == Role::kWorker) {
    GLN_ASSIGN_OR_RETURN(const uint32_t seat, find(identity));
    if (member_of(seat) != member) return wrong(name(seat));
    return seat;
  }
  const std::string who = identity.index.has_value() ? absl::StrCat("summer ", *identity.index) : "a summer";
  if (member < workers_ || member >= plan::kMaxMembers) return wrong(who);
  const uint32_t place = member - workers_;
  if (place >= summer_indices_.size()) {
    if (!may_grow) return wrong(who);
    fit_summers(place + 1);
  }
  const uint32_t seat = ranks() + place;
  if (!identity.index.has_value() || summer_indices_[place] == *identity.index) return seat;
  // set_summers() may have skipped indices, so the member of an empty seat may have another index.
  if (seats_[seat].state != Seat::State::kEmpty) return wrong(who);
  if (const auto guess = seat_of_index(Role::kSummer, *identity.index); guess.has_value()) {
    if (seats_[*guess].state != Seat::State::kEmpty) return wrong(who);
    std::swap(summer_indices_[*guess - ranks()], summer_indices_[place]);
  }
  summer_indices_[place] = *identity.index;
  return seat;
}

absl::Status check(const Identity& identity, const std::string& who) {
  const bool has_summer = identity.role == Role::kSummer || identity.local_rank == 0;
  if (const auto address = Address::parse(identity.address); has_summer && !address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(who, ": its summer's address: ", address.status().message()));
  } else if (has_summer && address->port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": its summer's address ", identity.address, " has port 0, to which no member can connect"));
  }
  if (const absl::Status status = plan::validate_endpoints(identity.endpoints); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(who, ": ", status.message()));
  }
  const double bandwidth = identity.bits_per_second;
  if (bandwidth != 0 && !(bandwidth >= plan::kMinBitsPerSecond && bandwidth <= plan::kMaxBitsPerSecond)) {
    return absl::InvalidArgumentError(absl::StrCat(who, " has a bandwidth of ", bandwidth, " bit/s; expected ",
                                                   plan::kMinBitsPerSecond, " to ", plan::kMaxBitsPerSecond));
  }
  return absl::OkStatus();
}

absl::Status Roster::take(uint32_t seat, StreamId stream, const Identity& identity, absl::Duration now) {
  if (seats_[seat].state == Seat::State::kPresent || seats_[seat].state == Seat::State::kLeft) {
    return absl::AlreadyExistsError(absl::StrCat(
        located(seat), " has joined already; was it started twice, or does a process of an earlier run remain?"));
  }
  GLN_RETURN_IF_ERROR(check(identity, name(seat)));
  change(seat, Seat::State::kPresent);
  seats_[seat].stream = stream;
  seats_[seat].identity = identity;
  seats_[seat].last_heard = now;
  by_stream_[stream] = seat;
  return absl::OkStatus();
}

void Roster::vacate(uint32_t seat, Seat::State state, absl::Duration now) {
  if (seats_[seat].state == Seat::State::kPresent) by_stream_.erase(seats_[seat].stream);
  change(seat, state);
  seats_[seat].away_since = now;
  if (state != Seat::State::kVacant) return;
  seats_[seat].since = seats_[seat].came_after = seats_[seat].acknowledged = seats_[seat].committed = 0;
  seats_[seat].prepared = 0;
  seats_[seat].bits_per_second = 0;
  seats_[seat].leaving = seats_[seat].on_standby = false;
}

namespace {

uint32_t is_to_come(Seat::State state) { return state == Seat::State::kEmpty || state == Seat::State::kAway ? 1 : 0; }

}  // namespace

void Roster::change(uint32_t seat, Seat::State state) {
  const auto joined = [](Seat::State which) {
    return which == Seat::State::kPresent || which == Seat::State::kLeft ? 1u : 0u;
  };
  const auto left = [](Seat::State which) { return which == Seat::State::kLeft ? 1u : 0u; };
  (is_summer(seat) ? joined_summers_ : joined_ranks_) += joined(state) - joined(seats_[seat].state);
  if (!is_summer(seat)) left_ranks_ += left(state) - left(seats_[seat].state);
  to_come_ += is_to_come(state) - is_to_come(seats_[seat].state);
  seats_[seat].state = state;
}

void Roster::fit_summers(uint32_t summers) {
  while (summer_indices_.size() > summers) {
    vacate(size() - 1, Seat::State::kVacant, absl::ZeroDuration());
    seats_.pop_back();
    summer_indices_.pop_back();
  }
  const auto largest = std::max_element(summer_indices_.begin(), summer_indices_.end());
  for (uint32_t index = largest == summer_indices_.end() ? 0 : *largest + 1; summer_indices_.size() < summers;
       ++index) {
    summer_indices_.push_back(index);
    seats_.emplace_back();
    ++to_come_;
  }
}

absl::Status Roster::set_bandwidth(Role role, uint32_t index, double bits_per_second) {
  const std::optional<uint32_t> seat = seat_of_index(role, index);
  if (!seat.has_value()) return absl::NotFoundError("no such member");
  if (!(bits_per_second >= plan::kMinBitsPerSecond && bits_per_second <= plan::kMaxBitsPerSecond)) {
    return absl::InvalidArgumentError(absl::StrCat("a bandwidth of ", bits_per_second, " bit/s is out of range"));
  }
  seats_[*seat].bits_per_second = bits_per_second;
  return absl::OkStatus();
}

uint32_t Roster::place_for(const Identity& identity) {
  const auto has = [this](uint32_t index) { return seat_of_index(Role::kSummer, index).has_value(); };
  if (identity.index.has_value() && has(*identity.index)) return *seat_of_index(Role::kSummer, *identity.index);
  uint32_t place = 0;
  while (place < summer_indices_.size() && seats_[ranks() + place].state != Seat::State::kVacant) ++place;
  if (place == summer_indices_.size()) {
    fit_summers(place + 1);
    change(ranks() + place, Seat::State::kVacant);
  }
  if (identity.index.has_value()) {
    summer_indices_[place] = *identity.index;
  }
  return ranks() + place;
}

std::vector<StreamId> Roster::set_summers(uint32_t summers) {
  std::vector<std::pair<uint32_t, Seat>> here;
  for (uint32_t seat = ranks(); seat < size(); ++seat) {
    if (seats_[seat].state == Seat::State::kPresent) here.emplace_back(index_of(seat), std::move(seats_[seat]));
  }
  fit_summers(0);
  std::sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<StreamId> surplus;
  for (; here.size() > summers; here.pop_back()) surplus.push_back(here.back().second.stream);
  // Seats still to be taken get the smallest free indices.
  for (uint32_t index = 0; here.size() < summers; ++index) {
    const auto place = std::lower_bound(here.begin(), here.end(), index,
                                        [](const auto& entry, uint32_t value) { return entry.first < value; });
    if (place == here.end() || place->first != index) here.emplace(place, index, Seat{});
  }
  for (auto& [index, entry] : here) {
    summer_indices_.push_back(index);
    seats_.push_back(std::move(entry));
    if (seats_.back().state != Seat::State::kPresent) {
      ++to_come_;
      continue;
    }
    by_stream_[seats_.back().stream] = size() - 1;
    ++joined_summers_;
  }
  return surplus;
}

}  // namespace gleaner::coordinator
