#include "common/kube/status.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gleaner::kube {
namespace {

std::string body(const std::string& reason, const std::string& message) {
  return absl::StrCat(R"({"kind":"Status","reason":")", reason, R"(","message":")", message, R"("})");
}

absl::StatusCode code(int http_code, const std::string& text, Verb verb = Verb::kOther) {
  return status_of_answer(http_code, text, verb, "GET /x").code();
}

TEST(Status, HttpCodesBecomeDocumentedStatusCodes) {
  EXPECT_EQ(code(400, body("BadRequest", "m")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(401, body("Unauthorized", "m")), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(code(404, body("NotFound", "m")), absl::StatusCode::kNotFound);
  EXPECT_EQ(code(410, body("Expired", "m")), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(code(422, body("Invalid", "m")), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(429, body("TooManyRequests", "m")), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(500, body("InternalError", "Internal error occurred: failed calling webhook")),
            absl::StatusCode::kInternal);
  EXPECT_EQ(code(500, ""), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(503, "no JSON"), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(504, body("Timeout", "m")), absl::StatusCode::kDeadlineExceeded);
}

TEST(Status, AlreadyExistsIsForCreationsOnly) {
  EXPECT_EQ(code(409, body("AlreadyExists", "m"), Verb::kCreate), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(code(409, body("Conflict", "quota changed"), Verb::kCreate), absl::StatusCode::kAborted);
  EXPECT_EQ(code(409, body("AlreadyExists", "m")), absl::StatusCode::kAborted);
  EXPECT_EQ(code(409, body("Conflict", "m")), absl::StatusCode::kAborted);
}

TEST(Status, AQuotaDiffersFromOtherRefusals) {
  EXPECT_EQ(code(403, body("Forbidden", "pods is forbidden: exceeded quota: q, requested: pods=1")),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(403, body("Forbidden", "pods is forbidden: User cannot create")), absl::StatusCode::kPermissionDenied);
}

TEST(Status, MessagesComeFromTheServerOrNameTheCall) {
  EXPECT_EQ(status_of_answer(422, body("Invalid", "spec.workers: must be positive"), Verb::kOther, "x").message(),
            "spec.workers: must be positive");
  EXPECT_EQ(status_of_answer(502, "<html>", Verb::kOther, "GET /api").message(),
            "GET /api was answered with HTTP 502 <html>");
}

}  // namespace
}  // namespace gleaner::kube
