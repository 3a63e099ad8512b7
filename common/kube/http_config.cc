#include "common/kube/http_config.h"

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gleaner::kube {
namespace {

using boost::asio::ssl::context;

// Without a port cpprestsdk would connect to port 0.
web::uri with_port(const web::uri& url) {
  return web::uri_builder()
      .set_scheme(url.scheme())
      .set_host(url.host())
      .set_port(url.port() > 0 ? url.port() : 80)
      .to_uri();
}

void present_certificate(context& tls, const Credentials& credentials, const ExecCredential* exec) {
  if (exec != nullptr && !exec->certificate.empty()) {
    tls.use_certificate_chain(boost::asio::buffer(exec->certificate));
    tls.use_private_key(boost::asio::buffer(exec->key), context::pem);
  } else if (!credentials.client_cert_file.empty()) {
    tls.use_certificate_chain_file(credentials.client_cert_file);
    tls.use_private_key_file(credentials.client_key_file, context::pem);
  }
}

}  // namespace

absl::StatusOr<web::web_proxy> proxy_of(const Credentials& credentials) {
  if (credentials.proxy_url.empty()) return web::web_proxy(web::web_proxy::disabled);
  try {
    const web::uri url(credentials.proxy_url);
    if (url.scheme() != "http" || url.host().empty()) {
      return absl::UnimplementedError(
          absl::StrCat("the kubeconfig's proxy-url has the scheme '", url.scheme(),
                       "': only HTTP proxies are supported, as http://HOST:PORT; HTTPS and SOCKS proxies are not"));
    }
    web::web_proxy proxy(with_port(url));
    const std::vector<std::string> user = absl::StrSplit(url.user_info(), absl::MaxSplits(':', 1));
    if (!user[0].empty()) {
      proxy.set_credentials({web::uri::decode(user[0]), user.size() > 1 ? web::uri::decode(user[1]) : ""});
    }
    return proxy;
  } catch (const std::exception& error) {  // no message has the URL, which may hold a password
    return absl::InvalidArgumentError(absl::StrCat("the kubeconfig's proxy-url: ", error.what()));
  }
}

std::string describe_server(const Credentials& credentials) {
  const auto proxy = proxy_of(credentials);
  if (!proxy.ok() || !proxy->is_specified()) return credentials.server;
  return absl::StrCat(credentials.server, " through the proxy ", proxy->address().to_string());
}

web::http::client::http_client_config make_http_config(const Credentials& credentials,
                                                       std::shared_ptr<const ExecCredential> exec,
                                                       absl::Duration timeout) {
  web::http::client::http_client_config config;
  config.set_timeout(std::chrono::duration_cast<std::chrono::microseconds>(absl::ToChronoMicroseconds(timeout)));
  config.set_max_redirects(0);
  if (!credentials.proxy_url.empty()) config.set_proxy(proxy_of(credentials).value());
  // Called for every new connection, so that rotated files take effect.
  config.set_ssl_context_callback([credentials, exec = std::move(exec)](context& tls) {
    if (!credentials.ca_file.empty()) tls.load_verify_file(credentials.ca_file);
    SSL_CTX_set_min_proto_version(tls.native_handle(), TLS1_2_VERSION);
    present_certificate(tls, credentials, exec.get());
  });
  return config;
}

}  // namespace gleaner::kube
