// Where objects are under the API server's URL.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/kube/resource.h"

namespace gleaner::kube {

// "/apis/gleaner.dev/v1alpha1/namespaces/ns/trainingjobs"; an empty `ns`: of all namespaces.
std::string collection_path(const Resource& resource, absl::string_view ns);
std::string object_path(const Resource& resource, absl::string_view ns, absl::string_view name,
                        absl::string_view subresource);

// "?a=b&c=d" with what isn't empty, percent-encoded; "" for nothing.
std::string query_text(const std::vector<std::pair<absl::string_view, std::string>>& parameters);

}  // namespace gleaner::kube
