#include "common/kube/client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kube/http.h"
#include "common/kube/object.h"
#include "common/kube/paths.h"
#include "common/kube/status.h"
#include "common/kube/watch_stream.h"

namespace gleaner::kube {
namespace {

constexpr char kJson[] = "application/json";

// Checks that a call about one object has a name: with an empty name, a read would be one of the whole collection.
absl::Status check_name(const Resource& resource, absl::string_view ns, absl::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("a ", resource.kind, " needs a name"));
  if (resource.namespaced && ns.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("the ", resource.kind, " '", name, "' needs a namespace"));
  }
  return absl::OkStatus();
}

Object delete_options(const DeleteOptions& options) {
  Object body = {{"apiVersion", "v1"},
                 {"kind", "DeleteOptions"},
                 {"propagationPolicy", options.foreground ? "Foreground" : "Background"}};
  if (!options.uid.empty()) body["preconditions"] = {{"uid", options.uid}};
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  return body;
}

// A Client over an Http that several clients share. The clients differ in the timeout of a call and in its
// cancellation.
class HttpClient : public Client {
 public:
  HttpClient(const Env& env, std::shared_ptr<Http> http, absl::Duration watch_limit, absl::Duration timeout,
             Cancellation* cancel)
      : env_(env), http_(std::move(http)), watch_limit_(watch_limit), timeout_(timeout), cancel_(cancel) {}

  absl::StatusOr<Object> get(const Resource& resource, const std::string& ns, const std::string& name) override {
    GLN_RETURN_IF_ERROR(check_name(resource, ns, name));
    return call({"GET", object_path(resource, ns, name, ""), "", ""});
  }

  absl::StatusOr<List> list(const Resource& resource, const Selector& selector) override;
  absl::StatusOr<std::string> list_pages(const Resource& resource, const Selector& selector, uint32_t page_size,
                                         const std::function<void(std::vector<Object>)>& on_page) override;

  absl::StatusOr<Object> create(const Resource& resource, const Object& object) override {
    if (!text_at(object, {"metadata", "generateName"}).empty()) {
      return absl::InvalidArgumentError(
          "create needs metadata.name, not generateName: a request that is sent again would create two objects");
    }
    const std::string ns = namespace_of(object);
    if (resource.namespaced) GLN_RETURN_IF_ERROR(check_name(resource, ns, name_of(object)));
    // Without this the server drops misspelt fields of a pod template, and the container runs without them.
    const std::string strict = resource.group.empty() ? "?fieldValidation=Strict" : "";
    return call({"POST", collection_path(resource, ns) + strict, kJson, to_text(object)}, Verb::kCreate);
  }

  absl::StatusOr<Object> replace(const Resource& resource, const Object& object,
                                 const std::string& subresource) override {
    GLN_RETURN_IF_ERROR(check_name(resource, namespace_of(object), name_of(object)));
    if (resource_version_of(object).empty()) {
      return absl::InvalidArgumentError(absl::StrCat("replacing the ", resource.kind, " '", key_of(object),
                                                     "' needs the metadata.resourceVersion that was read"));
    }
    const std::string path = object_path(resource, namespace_of(object), name_of(object), subresource);
    return call({"PUT", path, kJson, to_text(object)});
  }

  absl::StatusOr<Object> apply(const Resource& resource, const Object& object, const ApplyOptions& options) override {
    GLN_RETURN_IF_ERROR(check_name(resource, namespace_of(object), name_of(object)));
    const std::string query =
        query_text({{"fieldManager", options.field_manager}, {"force", options.force ? "true" : ""}});
    const std::string path = object_path(resource, namespace_of(object), name_of(object), options.subresource);
    return call({"PATCH", path + query, "application/apply-patch+yaml", to_text(object)});
  }

  absl::StatusOr<Object> merge_patch(const Resource& resource, const std::string& ns, const std::string& name,
                                     const Object& patch, const std::string& subresource) override {
    GLN_RETURN_IF_ERROR(check_name(resource, ns, name));
    const std::string path = object_path(resource, ns, name, subresource);
    return call({"PATCH", path, "application/merge-patch+json", to_text(patch)});
  }

  absl::Status remove(const Resource& resource, const std::string& ns, const std::string& name,
                      const DeleteOptions& options) override {
    GLN_RETURN_IF_ERROR(check_name(resource, ns, name));
    const absl::Status status =
        call({"DELETE", object_path(resource, ns, name, ""), kJson, to_text(delete_options(options))}).status();
    if (absl::IsNotFound(status)) return absl::OkStatus();
    // There is another object of that name, so the one with the given uid is gone.
    const bool other_uid = absl::IsAborted(status) && absl::StrContains(status.message(), "UID in the precondition");
    return !options.uid.empty() && other_uid ? absl::OkStatus() : status;
  }

  absl::Status remove_all(const Resource& resource, const Selector& selector, const DeleteOptions& options) override {
    if (resource.namespaced && selector.ns.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("removing all ", resource.plural, " needs a namespace"));
    }
    const std::string query = query_text({{"labelSelector", selector.labels}, {"fieldSelector", selector.fields}});
    const std::string path = collection_path(resource, selector.ns) + query;
    const absl::Status status = call({"DELETE", path, kJson, to_text(delete_options(options))}).status();
    return absl::IsNotFound(status) ? absl::OkStatus() : status;
  }

  absl::StatusOr<Object> get_raw(const std::string& path) override {
    GLN_ASSIGN_OR_RETURN(const Http::Response response, send({"GET", path, "", ""}, Verb::kOther));
    auto parsed = parse_object(response.body);
    return parsed.ok() ? parsed : Object(response.body);  // the answer of "/readyz" is text
  }

  std::unique_ptr<Client> bounded(absl::Duration timeout, Cancellation* cancel) override {
    return std::make_unique<HttpClient>(env_, http_, watch_limit_, timeout, cancel);
  }

  absl::Status watch(const Resource& resource, const Selector& selector, const std::string& resource_version,
                     Cancellation& cancel, const std::function<void(WatchEvent)>& on_event) override;

 private:
  // Sends a request. Returns the answer, or an error if its status is not a success.
  absl::StatusOr<Http::Response> send(const Http::Request& request, Verb verb) {
    GLN_ASSIGN_OR_RETURN(Http::Response response, http_->call(request, timeout_, cancel_));
    if (response.status < 200 || response.status > 299) {
      return status_of_answer(response.status, response.body, verb, absl::StrCat(request.method, " ", request.target));
    }
    return response;
  }
  absl::StatusOr<Object> call(const Http::Request& request, Verb verb = Verb::kOther) {
    GLN_ASSIGN_OR_RETURN(const Http::Response response, send(request, verb));
    auto object = parse_object(response.body);
    if (object.ok() && object->is_object()) return object;
    return absl::UnavailableError(absl::StrCat(request.method, " ", request.target, ": expected a JSON object, not ",
                                               response.body.substr(0, 80)));
  }

  const Env env_;
  const std::shared_ptr<Http> http_;
  const absl::Duration watch_limit_;
  const absl::Duration timeout_;
  Cancellation* const cancel_;
};

absl::StatusOr<std::string> HttpClient::list_pages(const Resource& resource, const Selector& selector,
                                                   uint32_t page_size,
                                                   const std::function<void(std::vector<Object>)>& on_page) {
  std::string next;
  do {
    const std::string query = query_text({{"labelSelector", selector.labels},
                                          {"fieldSelector", selector.fields},
                                          {"limit", page_size == 0 ? "" : absl::StrCat(page_size)},
                                          {"continue", next}});
    GLN_ASSIGN_OR_RETURN(Object page, call({"GET", collection_path(resource, selector.ns) + query, "", ""}));
    std::vector<Object> items;
    if (const auto found = page.find("items"); found != page.end() && found->is_array()) {
      items = std::move(found->get_ref<Object::array_t&>());
    }
    // The server leaves apiVersion and kind out of the items of a list.
    for (Object& item : items) {
      item["apiVersion"] = resource.api_version();
      item["kind"] = resource.kind;
    }
    on_page(std::move(items));
    next = text_at(page, {"metadata", "continue"});
    if (next.empty()) return resource_version_of(page);
  } while (true);
}

absl::StatusOr<List> HttpClient::list(const Resource& resource, const Selector& selector) {
  List list;
  const auto collect = [&list](std::vector<Object> page) {
    if (list.items.empty()) {
      list.items = std::move(page);
    } else {
      std::move(page.begin(), page.end(), std::back_inserter(list.items));
    }
  };
  auto version = list_pages(resource, selector, kPageSize, collect);
  if (absl::IsOutOfRange(version.status())) {
    // The server has compacted the version from which the pages are read. A list in one page can't meet this error.
    list.items.clear();
    version = list_pages(resource, selector, 0, collect);
  }
  if (!version.ok()) return version.status();
  list.resource_version = *std::move(version);
  return list;
}

absl::Status HttpClient::watch(const Resource& resource, const Selector& selector, const std::string& resource_version,
                               Cancellation& cancel, const std::function<void(WatchEvent)>& on_event) {
  if (resource_version.empty() || resource_version == "0") {
    return absl::InvalidArgumentError("a watch starts at the resource version of a list");
  }
  // A random limit keeps the watches of many clients from ending at once. So watches spread over all servers again
  // after some servers were down.
  std::array<uint8_t, 2> dice{};
  GLN_RETURN_IF_ERROR(env_.random->fill(dice));
  const int64_t seconds = absl::ToInt64Seconds(watch_limit_ * (1.0 + (dice[0] * 256.0 + dice[1]) / 65536.0));
  const std::string query = query_text({{"watch", "1"},
                                        {"allowWatchBookmarks", "true"},
                                        {"resourceVersion", resource_version},
                                        {"timeoutSeconds", absl::StrCat(seconds)},
                                        {"labelSelector", selector.labels},
                                        {"fieldSelector", selector.fields}});
  const std::string target = collection_path(resource, selector.ns) + query;

  LineReader lines;
  absl::Status broken;
  const std::function<bool(absl::string_view)> on_line = [&](absl::string_view line) {
    auto event = parse_watch_event(line);
    if (event.ok()) {
      on_event(*std::move(event));
    } else {
      broken = event.status();
    }
    return broken.ok();
  };
  const auto response = http_->stream({"GET", target, "", ""}, &cancel, cancel_,
                                      [&](absl::string_view chunk) { return lines.feed(chunk, on_line); });
  if (!broken.ok()) return broken;
  if (!response.ok()) return response.status();
  if (response->status != 200) {
    return status_of_answer(response->status, response->body, Verb::kOther, absl::StrCat("GET ", target));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::create(const Env& env, Options options) {
  GLN_ASSIGN_OR_RETURN(std::unique_ptr<Http> http,
                       Http::create(*env.clock, {options.credentials, options.user_agent, options.timeout,
                                                 options.stall_timeout, options.in_flight}));
  return std::unique_ptr<Client>(new HttpClient(env, std::move(http), options.watch_limit, options.timeout, nullptr));
}

}  // namespace gleaner::kube
