// Functions that make URL paths of API objects.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/kube/resource.h"

namespace gleaner::kube {

// Returns, for example, "/apis/gleaner.dev/v1alpha1/namespaces/ns/trainingjobs". An empty `ns` means all namespaces.
std::string collection_path(const Resource& resource, absl::string_view ns);
std::string object_path(const Resource& resource, absl::string_view ns, absl::string_view name,
                        absl::string_view subresource);

// Returns a percent-encoded query such as "?a=b&c=d". Parameters with empty values are left out; "" if none remains.
std::string query_text(const std::vector<std::pair<absl::string_view, std::string>>& parameters);

}  // namespace gleaner::kube
