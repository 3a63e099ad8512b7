// Client calls the Kubernetes API server.
//
// Calls block the calling thread until the answer, an error or the timeout. They are thread safe; at most
// Options::in_flight run at once. HTTP may send a request again that the server has already carried out (cpprestsdk
// does so when a reused connection breaks). So every write here is idempotent or guarded by a resource version: two
// executions have the effect of one. If a create fails with AlreadyExists, the object may be the one that the caller
// itself has created. So callers use fixed names, read the object and compare.
//
// main() must call prepare_process() (process.h) first.
//
// Status codes: NotFound 404; AlreadyExists 409 of a create; Aborted any other 409 (a conflict: read again), also a 409
// of a create with the reason Conflict (a quota under load); InvalidArgument 400, 422; PermissionDenied 403;
// ResourceExhausted 403 by a quota; Unauthenticated 401; OutOfRange 410 (the resource version is too old: list again);
// Internal 500 with the reason InternalError, above all if the server can't call an admission webhook; DeadlineExceeded
// and Unavailable (429, other 5xx, transport errors): try again later; Cancelled by a Cancellation. The messages come
// from the server and name the field.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/kube/cancellation.h"
#include "common/kube/credentials.h"
#include "common/kube/resource.h"

namespace gleaner::kube {

using Object = nlohmann::json;  // in the form in which the API server writes it

struct Selector {
  std::string ns;      // empty: all namespaces
  std::string labels;  // label selector: "gleaner.dev/job=digits"
  std::string fields;  // field selector: "spec.nodeName=n1"
};

struct List {
  std::vector<Object> items;
  std::string resource_version;
};

constexpr uint32_t kPageSize = 500;  // objects per page of a list

struct ApplyOptions {
  std::string field_manager = "gleaner";
  bool force = true;        // takes over fields that another manager owns
  std::string subresource;  // "status", for example; empty: the object itself
};

struct DeleteOptions {
  std::string uid;                               // deletes only the object with this uid; empty: any
  std::optional<uint32_t> grace_period_seconds;  // none: the object's own grace period
  bool foreground = false;                       // deletes dependents first
};

enum class EventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  EventType type;
  Object object;  // the object of a bookmark has only a resource version
};

class Client {
 public:
  struct Options {
    Credentials credentials;
    std::string user_agent = "gleaner";
    absl::Duration timeout = absl::Seconds(30);        // of one call, from start to end
    absl::Duration stall_timeout = absl::Seconds(90);  // of a watch that receives nothing
    absl::Duration watch_limit = absl::Minutes(5);     // the server ends a watch after one to two times this limit
    uint32_t in_flight = 16;                           // calls at the same time
  };

  static absl::StatusOr<std::unique_ptr<Client>> create(const Env& env, Options options);
  virtual ~Client() = default;

  virtual absl::StatusOr<Object> get(const Resource& resource, const std::string& ns, const std::string& name) = 0;
  // Lists all objects, in pages of kPageSize. Sets apiVersion and kind of the items, and drops their managedFields.
  virtual absl::StatusOr<List> list(const Resource& resource, const Selector& selector) = 0;
  // Lists page by page, for callers that decode each page and keep little of it. Returns the resource version of the
  // list. A `page_size` of 0 asks for a single page. OutOfRange: the list expired between two pages; list again,
  // preferably with a page size of 0.
  virtual absl::StatusOr<std::string> list_pages(const Resource& resource, const Selector& selector, uint32_t page_size,
                                                 const std::function<void(std::vector<Object>)>& on_page) = 0;
  // InvalidArgument: the object has generateName, so a request that is sent again would create a second object; or it
  // is of the core group and has a field that the server does not know, and would drop otherwise.
  virtual absl::StatusOr<Object> create(const Resource& resource, const Object& object) = 0;
  // Replaces an object. Aborted if the object's resource version is not the current one.
  virtual absl::StatusOr<Object> replace(const Resource& resource, const Object& object,
                                         const std::string& subresource = "") = 0;
  virtual absl::StatusOr<Object> apply(const Resource& resource, const Object& object,
                                       const ApplyOptions& options) = 0;  // server-side apply
  virtual absl::StatusOr<Object> merge_patch(const Resource& resource, const std::string& ns, const std::string& name,
                                             const Object& patch, const std::string& subresource = "") = 0;
  // Deletes an object. OK if there is no object with that name, or if it has another uid than options.uid.
  virtual absl::Status remove(const Resource& resource, const std::string& ns, const std::string& name,
                              const DeleteOptions& options) = 0;
  virtual absl::Status remove_all(const Resource& resource, const Selector& selector, const DeleteOptions& options) = 0;
  // Reads a path that does not belong to a resource: "/version", "/readyz".
  virtual absl::StatusOr<Object> get_raw(const std::string& path) = 0;

  // Returns a client that shares this one's connections and limit of calls in flight. Its calls end after `timeout`, or
  // with Cancelled when `cancel` is cancelled. The timeout of the connection itself stays Options::timeout. `cancel`
  // may be null; otherwise it must outlive the returned client.
  virtual std::unique_ptr<Client> bounded(absl::Duration timeout, Cancellation* cancel) = 0;

  // Calls `on_event` on the calling thread with each change after `resource_version`, in order, and with bookmarks.
  // Returns Cancelled when `cancel` is cancelled (from any thread), OK when the server ends the watch, OutOfRange when
  // the caller must list again, or the error that broke the watch. DeadlineExceeded: the server accepted the watch and
  // then sent nothing for Options::stall_timeout. This need not be a failure: most servers send a bookmark about once a
  // minute, but servers with etcd before 3.4.25 send none while nothing changes. The caller then watches again.
  virtual absl::Status watch(const Resource& resource, const Selector& selector, const std::string& resource_version,
                             Cancellation& cancel, const std::function<void(WatchEvent)>& on_event) = 0;
};

}  // namespace gleaner::kube
