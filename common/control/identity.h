// Identity and Resume are the statements that a member makes when it joins a coordinator. Plain values;
// coordinator.proto describes the messages that carry them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gleaner::control {

enum class Role { kWorker, kSummer, kObserver };  // an observer is no member, and has no seat

struct Identity {
  Role role = Role::kWorker;
  std::optional<uint32_t> index;  // of the worker or summer; a summer without one gets a free one
  uint32_t local_rank = 0;
  uint32_t local_size = 1;
  std::string address;  // HOST:PORT of the member's summer; empty for local ranks above 0
  double bits_per_second = 0;
  std::vector<std::string> endpoints;  // as in plan::Member
  std::string network;                 // network_id() (common/base/own_network.h); empty: not known
  std::string job;
  bool reads_summary = false;  // of an observer: it only reads the summary of the job
  friend bool operator==(const Identity&, const Identity&) = default;
};

// The state that a member shows when it returns to a coordinator.
struct Resume {
  std::string session;      // the last session that the member was told
  uint32_t committed = 0;   // epoch of its plan in force; 0: none yet
  uint32_t prepared = 0;    // the highest later epoch that the member was told to prepare, even if withdrawn; 0: none
  std::string plan_digest;  // SHA-256 of the serialized committed plan
  uint32_t member = 0;      // its number in that plan
  uint64_t term = 0;        // highest term of all coordinators that have welcomed the member
  friend bool operator==(const Resume&, const Resume&) = default;
};

}  // namespace gleaner::control
