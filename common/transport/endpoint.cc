#include "common/transport/endpoint.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace gleaner::transport {
namespace {

constexpr size_t kMaxPathBytes = 107;  // sockaddr_un::sun_path without its final zero

bool is_printable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

}  // namespace

absl::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kInproc:
      return "inproc";
    case Kind::kShm:
      return "shm";
    case Kind::kRdma:
      return "rdma";
    case Kind::kTcp:
      return "tcp";
  }
  return "unknown";
}

absl::StatusOr<Kind> parse_kind(absl::string_view name) {
  for (const Kind kind : kBetweenProcesses) {
    if (name_of(kind) == name) return kind;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is not a transport; expected shm, rdma or tcp"));
}

std::string Endpoint::to_string() const {
  if (kind == Kind::kShm) return absl::StrCat("shm://", host, address.host);
  return absl::StrCat(name_of(kind), "://", address.to_string());
}

absl::StatusOr<Endpoint> Endpoint::parse(absl::string_view text) {
  const auto invalid = [text](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not an endpoint: ", why));
  };
  const size_t colon = text.find("://");
  if (colon == absl::string_view::npos) return invalid("expected KIND://WHERE, for example tcp://10.0.0.1:7000");
  const auto kind = parse_kind(text.substr(0, colon));
  if (!kind.ok()) return invalid(kind.status().message());
  const absl::string_view where = text.substr(colon + 3);
  if (*kind != Kind::kShm) {
    absl::StatusOr<Address> address = Address::parse(where);
    if (!address.ok()) return invalid(address.status().message());
    if (address->port == 0) return invalid("no member can connect to port 0");
    return Endpoint{*kind, "", *std::move(address)};
  }
  const size_t slash = where.find('/');
  if (slash == 0 || slash == absl::string_view::npos) return invalid("expected shm://HOST/PATH of a socket");
  const absl::string_view path = where.substr(slash);
  if (path.size() > kMaxPathBytes)
    return invalid(absl::StrCat("a socket's path has at most ", kMaxPathBytes, " bytes"));
  if (path.back() == '/' || !is_printable(where)) return invalid("expected shm://HOST/PATH of a socket");
  return Endpoint{*kind, std::string(where.substr(0, slash)), {std::string(path), 0}};
}

std::vector<Endpoint> parse_endpoints(const std::vector<std::string>& texts) {
  std::vector<Endpoint> endpoints;
  for (const std::string& text : texts) {
    absl::StatusOr<Endpoint> endpoint = Endpoint::parse(text);
    if (endpoint.ok()) endpoints.push_back(*std::move(endpoint));
  }
  return endpoints;
}

std::vector<std::string> to_texts(const std::vector<Endpoint>& endpoints) {
  std::vector<std::string> texts;
  texts.reserve(endpoints.size());
  for (const Endpoint& endpoint : endpoints) texts.push_back(endpoint.to_string());
  return texts;
}

absl::StatusOr<std::string> directory_id(const std::string& directory) {
  struct stat found {};
  if (stat(directory.c_str(), &found) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("directory ", directory));
  if (!S_ISDIR(found.st_mode)) return absl::NotFoundError(absl::StrCat(directory, " is not a directory"));
  std::string boot;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  if (!std::getline(file, boot) || boot.empty() || !is_printable(boot)) {
    return absl::UnavailableError("can't read /proc/sys/kernel/random/boot_id, which names this machine");
  }
  return absl::StrCat(boot, ".", absl::Hex(found.st_dev), ".", absl::Hex(found.st_ino));
}

}  // namespace gleaner::transport
