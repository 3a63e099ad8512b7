#include "common/http/routes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::http {

Answer plain(int status, absl::string_view text) {
  return {status, absl::StrCat(text, "\n"), "text/plain; charset=utf-8"};
}

Routes::Routes(std::vector<Route> routes) {
  for (Route& route : routes) by_path_[route.path][route.method] = std::move(route.handle);
}

Routes::Found Routes::find(const std::string& method, absl::string_view target) const {
  const std::string path(target.substr(0, target.find('?')));
  const auto methods = by_path_.find(path);
  if (methods == by_path_.end()) return {nullptr, false, plain(404, absl::StrCat("no such path: ", path))};
  const auto handler = methods->second.find(method == "HEAD" ? "GET" : method);
  if (handler != methods->second.end()) return {&handler->second, handler->first != "GET", {}};
  Answer refusal = plain(405, absl::StrCat("no such method here: ", method));
  refusal.allow = absl::StrJoin(methods->second, ", ", [](std::string* out, const auto& each) {
    absl::StrAppend(out, each.first == "GET" ? "GET, HEAD" : each.first);
  });
  return {nullptr, false, std::move(refusal)};
}

}  // namespace gleaner::http
