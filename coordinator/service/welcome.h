// welcome_message() makes the Admission that a member gets when it has joined: the state of the job, and what both ends
// need for the secret of the data connections. Pure.
#pragma once

#include <string>

#include "common/control/handshake.h"
#include "coordinator/core/rounds.h"
#include "coordinator/roster/messages.h"
#include "coordinator/service/service.h"

namespace gleaner::coordinator {

// The nonces that the two ends of a stream drew for its handshake.
struct Nonces {
  std::string coordinator;
  std::string member;
};

// `nonce`: of the job. `nonces`: of the member's stream. Core has filled in its fields of `welcome`.
control::Admission welcome_message(const Service::JobOptions& job, const std::string& nonce, const Rounds& rounds,
                                   const Nonces& nonces, Welcome welcome);

}  // namespace gleaner::coordinator
