// Http sends HTTP requests to one server. It hides cpprestsdk.
//
// Connections are kept alive and shared. Thread safe; calls block the calling thread. Errors: Cancelled;
// DeadlineExceeded (of a call: no answer within `timeout` from its start; of a stream: no data for `stall_timeout`
// after the stream began); Unavailable if there is no answer for any other reason. An answer with any HTTP status is a
// success.
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
    uint32_t in_flight;  // calls at the same time; streams are not counted
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

  // InvalidArgument if credentials.server is not a URL.
  static absl::StatusOr<std::unique_ptr<Http>> create(const Clock& clock, Options options);
  ~Http();

  absl::StatusOr<Response> call(const Request& request, absl::Duration timeout, Cancellation* cancel);

  // Passes the body of a 200 to `on_chunk` as it arrives, on the calling thread, until the server ends the body or
  // on_chunk returns false. For any other status the response has the body.
  absl::StatusOr<Response> stream(const Request& request, Cancellation* cancel, Cancellation* other_cancel,
                                  const std::function<bool(absl::string_view)>& on_chunk);

 private:
  struct Parts;
  explicit Http(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace gleaner::kube
