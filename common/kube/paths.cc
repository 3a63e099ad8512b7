#include "common/kube/paths.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gleaner::kube {
namespace {

std::string percent_encoded(absl::string_view text) {
  std::string encoded;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace

std::string collection_path(const Resource& resource, absl::string_view ns) {
  std::string path = resource.group.empty() ? absl::StrCat("/api/", resource.version)
                                            : absl::StrCat("/apis/", resource.group, "/", resource.version);
  if (resource.namespaced && !ns.empty()) absl::StrAppend(&path, "/namespaces/", percent_encoded(ns));
  absl::StrAppend(&path, "/", resource.plural);
  return path;
}

std::string object_path(const Resource& resource, absl::string_view ns, absl::string_view name,
                        absl::string_view subresource) {
  std::string path = absl::StrCat(collection_path(resource, ns), "/", percent_encoded(name));
  if (!subresource.empty()) absl::StrAppend(&path, "/", subresource);
  return path;
}

std::string query_text(const std::vector<std::pair<absl::string_view, std::string>>& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters) {
    if (!value.empty()) absl::StrAppend(&text, text.empty() ? "?" : "&", name, "=", percent_encoded(value));
  }
  return text;
}

}  // namespace gleaner::kube
