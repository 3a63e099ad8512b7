#include "operator/coordinator/roster.h"

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/plan/model.h"

namespace gleaner::coordinator {

Roster::Roster(const Options& options)
    : workers_(options.workers),
      local_ranks_(options.local_ranks),
      seats_(options.workers * options.local_ranks + options.summers) {}

uint32_t Roster::member_of(uint32_t seat) const {
  return is_summer(seat) ? workers_ + seat - ranks() : seat / local_ranks_;
}

uint32_t Roster::seat_of_member(uint32_t member) const {
  return member < workers_ ? member * local_ranks_ : ranks() + member - workers_;
}

uint32_t Roster::index_of(uint32_t seat) const { return is_summer(seat) ? seat - ranks() : seat / local_ranks_; }

std::string Roster::name(uint32_t seat) const {
  if (is_summer(seat)) return absl::StrCat("summer ", seat - ranks());
  if (local_ranks_ == 1) return absl::StrCat("worker ", seat);
  return absl::StrCat("worker ", seat / local_ranks_, " (local rank ", seat % local_ranks_, ")");
}

std::string Roster::located(uint32_t seat) const {
  const std::string& address = seats_[seat].identity.address;
  return address.empty() ? name(seat) : absl::StrCat(name(seat), " at ", address);
}

std::string Roster::names(const std::vector<uint32_t>& seats) const {
  constexpr size_t kMost = 10;
  std::string text;
  for (size_t i = 0; i < seats.size() && i < kMost; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", name(seats[i]));
  if (seats.size() > kMost) absl::StrAppend(&text, " and ", seats.size() - kMost, " more");
  return text;
}

std::optional<uint32_t> Roster::seat_of(StreamId stream) const {
  const auto found = by_stream_.find(stream);
  return found == by_stream_.end() ? std::nullopt : std::optional(found->second);
}

absl::StatusOr<uint32_t> Roster::find_seat(const Identity& identity) const {
  if (identity.role == Role::kSummer) {
    const uint32_t summers = size() - ranks();
    if (identity.index.has_value()) {
      if (*identity.index < summers) return ranks() + *identity.index;
      return absl::InvalidArgumentError(
          absl::StrCat("summer ", *identity.index, " is not in this job, which has ", summers, " (from 0)"));
    }
    for (uint32_t seat = ranks(); seat < size(); ++seat) {
      if (seats_[seat].state == Seat::State::kEmpty) return seat;
    }
    return absl::AlreadyExistsError(absl::StrCat("this job has ", summers, " summers, and all of them have joined"));
  }
  if (!identity.index.has_value() || *identity.index >= workers_) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker ", identity.index.has_value() ? absl::StrCat(*identity.index) : "without an index",
                     " is not in this job, which has ", workers_, " (from 0); check GLEANER_WORKER"));
  }
  if (identity.local_size != local_ranks_ || identity.local_rank >= local_ranks_) {
    return absl::InvalidArgumentError(absl::StrCat("worker ", *identity.index, " has local rank ", identity.local_rank,
                                                   " of ", identity.local_size, ", but this job has ", local_ranks_,
                                                   " per worker; check GLEANER_LOCAL_RANK and GLEANER_LOCAL_SIZE"));
  }
  return *identity.index * local_ranks_ + identity.local_rank;
}

absl::StatusOr<uint32_t> Roster::join(StreamId stream, const Identity& identity, absl::Duration now) {
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, find_seat(identity));
  if (seats_[seat].state != Seat::State::kEmpty) {
    return absl::AlreadyExistsError(
        absl::StrCat(located(seat), " has joined already; is the same one started twice, or left from another run?"));
  }
  const bool has_summer = is_summer(seat) || identity.local_rank == 0;
  if (const auto address = Address::parse(identity.address); has_summer && !address.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(name(seat), ": its summer's address: ", address.status().message()));
  } else if (has_summer && address->port == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name(seat), ": its summer's address ", identity.address,
                                                   " has port 0, which nobody can connect to"));
  }
  const double bandwidth = identity.bits_per_second;
  if (bandwidth != 0 && !(bandwidth >= plan::kMinBitsPerSecond && bandwidth <= plan::kMaxBitsPerSecond)) {
    return absl::InvalidArgumentError(absl::StrCat(name(seat), " says it has ", bandwidth, " bit/s"));
  }
  seats_[seat] = {Seat::State::kPresent, stream, identity, now, 0};
  by_stream_[stream] = seat;
  ++(is_summer(seat) ? joined_summers_ : joined_ranks_);
  return seat;
}

}  // namespace gleaner::coordinator
