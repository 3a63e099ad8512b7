// Functions that convert the API server's answers to absl::Status. client.h lists the codes.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gleaner::kube {

enum class Verb { kCreate, kOther };

// Returns the error for `http_code`, which is outside 200..299. `body` is a metav1.Status as JSON, or any text that a
// proxy wrote. The message names `call` ("GET /api/v1/pods") if the body has no message.
absl::Status status_of_answer(int http_code, absl::string_view body, Verb verb, absl::string_view call);

// Returns whether the API server, or an admission webhook that it calls, refuses a write, according to the error of a
// Client's call. An API server that can't be reached, or has too much to do, refuses nothing.
bool is_refusal(const absl::Status& error);

}  // namespace gleaner::kube
