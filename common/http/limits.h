// Limits of an HTTP server, which keep peers without credentials from filling its memory and its connections.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace gleaner::http {

struct Limits {
  // Connections at once. A further peer is served in place of another: the server closes the connection that has waited
  // longest since its last request, among those of the host that has the most.
  size_t connections = 64;
  size_t head_bytes = size_t{16} << 10;  // of one request: its first line and its headers
  size_t body_bytes = size_t{1} << 20;   // of one request
  // The server holds bodies of requests and answers with so many bytes at once, at least body_bytes. Above this limit
  // it closes connections that hold more than their share, held_bytes / connections, the largest first. So a small
  // request always finds room. One answer alone may be larger.
  size_t held_bytes = size_t{8} << 20;
  absl::Duration request = absl::Seconds(10);  // from the first byte of a request to its last byte
  absl::Duration answer = absl::Seconds(10);   // until the peer has taken the answer
  // Between two requests of a connection. Longer than the 90 s for which Go's clients keep an idle connection, so that
  // the client closes it: a client may not send a POST again that meets a connection which the server is closing.
  absl::Duration idle = absl::Minutes(3);
};

}  // namespace gleaner::http
