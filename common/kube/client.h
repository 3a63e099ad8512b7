// The Kubernetes API server, one call at a time.
//
// Calls block the calling thread until the answer, an error or the timeout, and are thread safe; no more than
// Options::in_flight run at once. HTTP may resend a request that was already carried out (cpprestsdk does, when a
// reused connection breaks): every write here is idempotent or guarded by a resource version, so that twice is the same
// as once. A create that ends in AlreadyExists may have been the caller's own: fixed names, read and compare.
//
// main() calls prepare_process() (process.h) first.
//
// Status codes: NotFound 404; AlreadyExists 409 of a create; Aborted 409 of anything else (a conflict: read again);
// InvalidArgument 400, 422; PermissionDenied 403; ResourceExhausted 403 by a quota; Unauthenticated 401; OutOfRange 410
// (resource version too old: list again); DeadlineExceeded, Unavailable (429, 5xx, transport): try again later;
// Cancelled by Cancel. A 409 of a create that says Conflict (quota, under load) is Aborted, too.
// Messages are the server's own, which name the field.
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
#include "common/kube/credentials.h"
#include "common/kube/resource.h"

namespace gleaner::kube {

using Object = nlohmann::json;  // as the API server writes it

struct Selector {
  std::string ns;      // empty: all namespaces
  std::string labels;  // "gleaner.dev/job=digits"
  std::string fields;  // "spec.nodeName=n1"
};

struct List {
  std::vector<Object> items;
  std::string resource_version;
};

constexpr uint32_t kPageSize = 500;  // objects per page of a list

struct ApplyOptions {
  std::string field_manager = "gleaner";
  bool force = true;        // take over fields that another manager has set
  std::string subresource;  // "status"
};

struct DeleteOptions {
  std::string uid;                               // only if this is still its uid
  std::optional<uint32_t> grace_period_seconds;  // none: the object's own
  bool foreground = false;                       // dependents go first
};

enum class EventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  EventType type;
  Object object;  // a bookmark has a resource version only
};

class Client {
 public:
  struct Options {
    Credentials credentials;
    std::string user_agent = "gleaner";
    absl::Duration timeout = absl::Seconds(30);        // of one call, from its start to its end
    absl::Duration stall_timeout = absl::Seconds(90);  // of a silent watch
    absl::Duration watch_limit = absl::Minutes(5);     // the server ends a watch after this to twice this
    uint32_t in_flight = 16;
  };

  // Ends calls from any thread; made by make_cancel(). Stays cancelled: later calls end at once.
  class Cancel {
   public:
    virtual ~Cancel() = default;
    virtual void cancel() = 0;
  };

  static absl::StatusOr<std::unique_ptr<Client>> create(const Env& env, Options options);
  virtual ~Client() = default;

  virtual absl::StatusOr<Object> get(const Resource& resource, const std::string& ns, const std::string& name) = 0;
  // All pages, 500 objects each; items get their apiVersion and kind. managedFields are dropped.
  virtual absl::StatusOr<List> list(const Resource& resource, const Selector& selector) = 0;
  // The same page by page, for what decodes at once and keeps little; returns the resource version. A `page_size` of 0
  // asks for one page. OutOfRange: the list grew too old between two pages, begin again (with page size 0 at best).
  virtual absl::StatusOr<std::string> list_pages(const Resource& resource, const Selector& selector, uint32_t page_size,
                                                 const std::function<void(std::vector<Object>)>& on_page) = 0;
  // InvalidArgument for an object with generateName: made twice, it would be two.
  virtual absl::StatusOr<Object> create(const Resource& resource, const Object& object) = 0;
  // The object's resource version must still be the one in force.
  virtual absl::StatusOr<Object> replace(const Resource& resource, const Object& object,
                                         const std::string& subresource = "") = 0;
  virtual absl::StatusOr<Object> apply(const Resource& resource, const Object& object,
                                       const ApplyOptions& options) = 0;  // server-side apply
  virtual absl::StatusOr<Object> merge_patch(const Resource& resource, const std::string& ns, const std::string& name,
                                             const Object& patch, const std::string& subresource = "") = 0;
  // OK also when there is nothing of that name (any more).
  virtual absl::Status remove(const Resource& resource, const std::string& ns, const std::string& name,
                              const DeleteOptions& options) = 0;
  virtual absl::Status remove_all(const Resource& resource, const Selector& selector, const DeleteOptions& options) = 0;
  // A read of any path, for what has no resource here: "/version", "/readyz".
  virtual absl::StatusOr<Object> get_raw(const std::string& path) = 0;

  virtual std::unique_ptr<Cancel> make_cancel() = 0;
  // The same client (connections, limit of calls in flight) for calls that are to end after `timeout`, or Cancelled
  // when `cancel` is. The connection's own timeout stays Options::timeout. `cancel` may be null, else outlives the
  // result.
  virtual std::unique_ptr<Client> bounded(absl::Duration timeout, Cancel* cancel) = 0;

  // Changes after `resource_version`, in order, on the calling thread, until `cancel` is cancelled from any
  // thread (Cancelled), the server ends the watch (OK), or it breaks. OutOfRange: list again. Bookmarks are asked for.
  // Silence for Options::stall_timeout, after the server has agreed to the watch, ends it, too (DeadlineExceeded). Most
  // servers send bookmarks about once a minute; those with an old etcd (before 3.4.25) have nothing to say about what
  // does not change, so that silence need not mean that something is wrong: watch again.
  virtual absl::Status watch(const Resource& resource, const Selector& selector, const std::string& resource_version,
                             Cancel& cancel, const std::function<void(WatchEvent)>& on_event) = 0;
};

}  // namespace gleaner::kube
