// HTTP to one server, over cpprestsdk, which stays behind this header.
//
// Connections are kept alive and shared. Thread safe; calls block the calling thread. Errors: Cancelled;
// DeadlineExceeded (call: `timeout` from its start to its end; stream: silence for `stall_timeout`
// after it began); Unavailable for
// all else that keeps an answer away. An answer of any HTTP status is no error here.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/cancellation.h"
#include "common/kube/credentials.h"

namespace gleaner::kube {

class Http {
 public:
  struct Options {
    Credentials credentials;
    std::string user_agent;
    absl::Duration timeout;
    absl::Duration stall_timeout;
    uint32_t in_flight;  // calls; streams don't count
  };
  struct Request {
    std::string method;
    std::string target;  // path and query
    std::string content_type;
    std::string body;
  };
  struct Response {
    int status = 0;
    std::string body;
  };

  // InvalidArgument: the server is no URL.
  static absl::StatusOr<std::unique_ptr<Http>> create(const Clock& clock, Options options);
  ~Http();

  absl::StatusOr<Response> call(const Request& request, absl::Duration timeout, Cancellation* cancel);

  // Hands the body of a 200 to `on_chunk` as it comes, on the calling thread, until the server ends it or on_chunk says
  // false. The body of another status is in the response.
  absl::StatusOr<Response> stream(const Request& request, Cancellation* cancel, Cancellation* other_cancel,
                                  const std::function<bool(absl::string_view)>& on_chunk);

 private:
  struct Parts;
  explicit Http(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace gleaner::kube
