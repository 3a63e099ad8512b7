#include "common/kube/status.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

absl::StatusCode code_of(int http_code, Verb verb, absl::string_view reason, absl::string_view message) {
  switch (http_code) {
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      // The API server has no reason code for a quota. The admission plugin's message has contained these words since
      // Kubernetes 1.0.
      return absl::StrContains(message, "exceeded quota:") ? absl::StatusCode::kResourceExhausted
                                                           : absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 409:
      return verb == Verb::kCreate && reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists
                                                                : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 500:
      return reason == "InternalError" ? absl::StatusCode::kInternal : absl::StatusCode::kUnavailable;
    case 408:
    case 504:
      return absl::StatusCode::kDeadlineExceeded;
    case 429:
      return absl::StatusCode::kUnavailable;
    default:
      return http_code >= 400 && http_code < 500 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status status_of_answer(int http_code, absl::string_view body, Verb verb, absl::string_view call) {
  std::string message;
  std::string reason;
  if (auto parsed = parse_object(body); parsed.ok()) {
    message = text_at(*parsed, {"message"});
    reason = text_at(*parsed, {"reason"});
  }
  if (message.empty()) message = absl::StrCat(call, " was answered with HTTP ", http_code, " ", body.substr(0, 200));
  return {code_of(http_code, verb, reason, message), message};
}

bool is_refusal(const absl::Status& error) {
  return absl::IsPermissionDenied(error) || absl::IsResourceExhausted(error) || absl::IsInvalidArgument(error) ||
         absl::IsInternal(error) || absl::IsDeadlineExceeded(error);
}

}  // namespace gleaner::kube
