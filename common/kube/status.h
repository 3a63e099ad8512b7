// What the API server's answers mean here: the one place where HTTP codes become absl::Status (codes: client.h).
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace gleaner::kube {

enum class Verb { kCreate, kOther };

// `http_code` outside 200..299; `body` a metav1.Status as JSON, or whatever a proxy wrote; `call` ("GET /api/v1/pods")
// is named when the body says nothing useful.
absl::Status status_of_answer(int http_code, absl::string_view body, Verb verb, absl::string_view call);

}  // namespace gleaner::kube
