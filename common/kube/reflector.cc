#include "common/kube/reflector.h"

#include <utility>

#include "common/base/thread.h"
#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

constexpr absl::Duration kPageTimeout = absl::Seconds(60);
// A server that ends a watch sooner, without an event, is rejecting its clients.
constexpr absl::Duration kShortWatch = absl::Seconds(1);

}  // namespace

Reflector::Reflector(const Env& env, Client& client, Options options, Sink& sink)
    : env_(env),
      client_(client),
      options_(std::move(options)),
      sink_(sink),
      lister_(client.bounded(kPageTimeout, &cancel_)),
      backoff_(*env.random, options_.first_delay, options_.longest_delay),
      thread_([this] { run(); }) {}

Reflector::~Reflector() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  cancel_.cancel();
  thread_.join();
}

bool Reflector::wait_synced(absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&synced_), timeout);
}

Reflector::Counts Reflector::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

void Reflector::count(uint64_t Counts::*counter) {
  absl::MutexLock lock(&mutex_);
  ++(counts_.*counter);
}

bool Reflector::stopped_within(absl::Duration delay) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&stopping_), delay);
}

void Reflector::run() {
  name_this_thread("gln-watch");
  while (!stopped_within(absl::ZeroDuration())) {
    const bool listing = version_.empty();
    const absl::Status status = listing ? list() : watch();
    if (status.ok()) continue;
    if (stopped_within(absl::ZeroDuration())) return;
    if (!listing && absl::IsDeadlineExceeded(status)) {
      count(&Counts::stalls);
      continue;
    }
    count(&Counts::breaks);
    if (absl::IsOutOfRange(status)) {
      count(&Counts::expired);
      version_.clear();
      // The list expired while its pages were read. A list in one page can't expire.
      if (listing) page_size_ = 0;
    }
    log_break(status);
    if (stopped_within(backoff_.next())) return;
  }
}

absl::Status Reflector::list() {
  count(&Counts::lists);
  sink_.begin_list();
  auto version =
      lister_->list_pages(options_.resource, options_.selector, page_size_, [this](const std::vector<Object>& page) {
        for (const Object& object : page) sink_.put(object);
      });
  if (!version.ok()) return version.status();
  sink_.end_list();
  version_ = *std::move(version);
  page_size_ = kPageSize;
  absl::MutexLock lock(&mutex_);
  synced_ = true;
  return absl::OkStatus();
}

absl::Status Reflector::watch() {
  count(&Counts::watches);
  const absl::Duration start = env_.clock->since_start();
  bool silent = true;
  absl::Status status =
      client_.watch(options_.resource, options_.selector, version_, cancel_, [this, &silent](const WatchEvent& event) {
        if (std::exchange(silent, false)) log_recovery();
        on_event(event);
      });
  if (status.ok() && silent && env_.clock->since_start() - start < kShortWatch) {
    return absl::UnavailableError("the server ended a watch as soon as it had begun");
  }
  if (status.ok()) log_recovery();
  return status;
}

void Reflector::on_event(const WatchEvent& event) {
  switch (event.type) {
    case EventType::kBookmark:
      break;
    case EventType::kDeleted:
      sink_.remove(event.object);
      break;
    case EventType::kAdded:
    case EventType::kModified:
      sink_.put(event.object);
      break;
  }
  if (std::string version = resource_version_of(event.object); !version.empty()) version_ = std::move(version);
  count(event.type == EventType::kBookmark ? &Counts::bookmarks : &Counts::events);
}

// Logs only the 1st, 2nd, 4th, 8th ... failure in a row, because an outage can be long and affect many machines.
void Reflector::log_break(const absl::Status& why) const {
  const uint32_t failures = backoff_.failures() + 1;
  if ((failures & (failures - 1)) != 0) return;
  env_.log->warning("listing or watching objects failed; trying again, with the objects that were read last",
                    "resource", options_.resource.plural, "failures", failures, "why", why.ToString());
}

void Reflector::log_recovery() {
  if (backoff_.failures() > 0) {
    env_.log->info("listing and watching objects works again", "resource", options_.resource.plural, "version",
                   version_);
  }
  backoff_.reset();
}

std::unique_ptr<Reflector> Reflector::start(const Env& env, Client& client, Options options, Sink& sink) {
  return std::unique_ptr<Reflector>(new Reflector(env, client, std::move(options), sink));
}

}  // namespace gleaner::kube
