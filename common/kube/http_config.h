// Functions that set up cpprestsdk's client for the credentials of an API server: CAs, client certificate, proxy.
#pragma once

#include <utility>  // missing in Boost 1.74's own includes

// Without this definition cpprestsdk's macro U collides with template parameters.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
#define _TURN_OFF_PLATFORM_STRING
#include <cpprest/http_client.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/kube/credentials.h"

namespace gleaner::kube {

// Returns the proxy of credentials.proxy_url, or none. Unimplemented for a proxy that cpprestsdk cannot use: it speaks
// HTTP, without TLS, to the proxy itself, and has no SOCKS.
absl::StatusOr<web::web_proxy> proxy_of(const Credentials& credentials);

// Returns the server's URL for messages, with the proxy if there is one, but without the proxy's password.
std::string describe_server(const Credentials& credentials);

// Returns a configuration for connections that present the certificate of `exec`, which may be null, or else that of
// `credentials`. `credentials` must have a proxy that proxy_of() accepts.
web::http::client::http_client_config make_http_config(const Credentials& credentials,
                                                       std::shared_ptr<const ExecCredential> exec,
                                                       absl::Duration timeout);

}  // namespace gleaner::kube
