// RequestTable holds the requests of one rank, from the program's call to their outcome. Pure: the caller passes plans,
// completions and times; the table returns the requests to start and those that have ended. Belongs to one thread at a
// time.
//
//   add() ── a plan has the tensor ──▶ started ──── end() ────▶ outcome ── take_outcomes() ──▶ the program
//     └───── no plan has it: waits ── on_plan() ──▶ started       ▲
//                            └──────────── end_all() ─────────────┘
//
// Declarations lets only one request of a tensor be in flight, so steps count up in the order of the program's calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/runtime/request.h"
#include "common/member/client.h"
#include "common/plan/plan.h"

namespace gleaner::runtime {

// A request with its tensor as this rank has declared it.
struct DeclaredRequest {
  Request request;           // the table sets its tensor and step when it starts
  uint32_t declaration = 0;  // the tensor's id in Declarations
  plan::Tensor tensor;
};

struct Outcome {
  uint64_t handle = 0;
  absl::Status status;
};

class RequestTable {
 public:
  // Adds a request. Returns it if the caller is to start it now, and nothing if the request waits for a plan with its
  // tensor.
  std::optional<Request> add(DeclaredRequest state);
  // Appends the outcome of a request that was not added.
  void refuse(uint64_t handle, const absl::Status& status) { outcomes_.push_back({handle, status}); }
  // Follows a plan, which extends the plan before. Returns the waiting requests that the caller is to start now.
  std::vector<Request> on_plan(const plan::Plan& plan);
  // Ends a request and appends its outcome. Returns its state, or nothing if the request has ended before.
  std::optional<DeclaredRequest> end(uint64_t handle, const absl::Status& status);
  // Ends all requests. Returns their states.
  std::vector<DeclaredRequest> end_all(const absl::Status& status);
  // Swaps the outcomes since the last call with `outcomes`, which must be empty.
  void take_outcomes(std::vector<Outcome>& outcomes) { outcomes.swap(outcomes_); }

  // Returns whether no request is in flight.
  bool empty() const { return requests_.empty(); }
  // Returns the number of started requests of the tensor; 0 if no plan has the tensor.
  uint64_t started(const std::string& tensor) const;
  // Returns the number of started requests of each tensor of the plan.
  const std::vector<uint64_t>& started() const { return started_; }
  // Returns the oldest request if it is long overdue. The coordinator then finds out which rank has not begun it.
  std::optional<control::Waiting> overdue(absl::Duration now) const;

 private:
  Request start(DeclaredRequest& state, uint32_t tensor);

  std::unordered_map<uint64_t, DeclaredRequest> requests_;  // in flight, by handle
  std::vector<uint64_t> waiting_;                           // handles of requests whose tensor no plan has yet
  std::unordered_map<std::string, uint32_t> tensors_;       // name to index in the plan
  std::vector<uint64_t> started_;                           // number of requests started, by index in the plan
  std::vector<Outcome> outcomes_;
};

}  // namespace gleaner::runtime
