// A roster whose members have joined, for tests of the parts of Core. The stream of the member in seat s is 100 + s.
#pragma once

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

inline Identity identity_of(const Options& options, uint32_t seat) {
  const uint32_t ranks = options.workers * options.local_ranks;
  Identity identity;
  identity.role = seat < ranks ? Role::kWorker : Role::kSummer;
  identity.index = seat < ranks ? seat / options.local_ranks : seat - ranks;
  identity.local_rank = seat < ranks ? seat % options.local_ranks : 0;
  identity.local_size = seat < ranks ? options.local_ranks : 1;
  identity.address = absl::StrCat("10.0.0.", seat, ":7000");
  return identity;
}

inline void seat_member(Roster& roster, const Options& options, uint32_t seat, absl::Duration now = {}) {
  ASSERT_EQ(roster.take(seat, 100 + seat, identity_of(options, seat), now), absl::OkStatus());
}

inline void seat_all(Roster& roster, const Options& options) {
  for (uint32_t seat = 0; seat < roster.size(); ++seat) seat_member(roster, options, seat);
}

inline Options job_of(uint32_t workers, uint32_t summers, uint32_t local_ranks = 1) {
  Options options;
  options.workers = workers;
  options.summers = summers;
  options.local_ranks = local_ranks;
  return options;
}

}  // namespace gleaner::coordinator
