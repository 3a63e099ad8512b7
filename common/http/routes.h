// Routes finds the handler of a request by its method and path.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gleaner::http {

struct Answer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::string allow = "";  // the header Allow of a 405; empty: no such header
};

// Returns an answer in plain text, with a line break at its end.
Answer plain(int status, absl::string_view text);

using Handler = std::function<Answer(const std::string& body)>;

struct Route {
  std::string method;  // GET, which also answers HEAD, or POST
  std::string path;    // exact path, such as /filter; the query of a request is ignored
  Handler handle;
};

class Routes {
 public:
  explicit Routes(std::vector<Route> routes);

  struct Found {
    const Handler* handle;  // null: `refusal` is the answer
    bool takes_body;
    Answer refusal;
  };
  // Finds the handler for a request of `method` to `target`, a path with or without a query. The handler lives as long
  // as this object.
  Found find(const std::string& method, absl::string_view target) const;

 private:
  std::map<std::string, std::map<std::string, Handler>> by_path_;  // by path, then by method
};

}  // namespace gleaner::http
