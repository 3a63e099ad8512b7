#include "common/kube/event_log.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

constexpr size_t kMaxMessage = 1024;  // bytes: the API server's limits
constexpr size_t kMaxReason = 128;
constexpr size_t kMaxNamePart = 200;  // bytes of the object's name in the Event's name, which may have 253

std::string digest(absl::string_view text) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), hash.data());
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(hash.data()), 8));
}

std::string seconds_text(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone()); }

}  // namespace

void EventLog::record(const Times& now, const ObjectReference& object, absl::string_view type,
                      absl::string_view whole_reason, absl::string_view whole_message) {
  forget_old(now.monotonic);
  const std::string reason = shortened(whole_reason, kMaxReason);
  const std::string message = shortened(whole_message, kMaxMessage);
  const char nul = '\0';
  const std::string key =
      absl::StrCat(digest(absl::StrCat(absl::string_view(&nul, 1), object.kind, " ", object.ns, " ", object.name, " ",
                                       object.uid, " ", type, " ", reason, " ", message)));
  Series& series = series_[key];
  if (series.count == 0 || now.monotonic - series.last > kWindow) {
    series.first = now.wall;
    series.count = 0;
  }
  series.last = now.monotonic;
  ++series.count;
  // A later series of the same records, or the series of another replica, gets an Event of its own.
  const std::string suffix = digest(absl::StrCat(key, " ", instance_, " ", absl::ToUnixMicros(series.first)));
  const bool was_waiting = !series.event.is_null();
  series.event = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", absl::StrCat(absl::string_view(object.name).substr(0, kMaxNamePart), ".", suffix)},
        {"namespace", object.ns.empty() ? "default" : object.ns}}},
      {"involvedObject", {{"apiVersion", object.api_version}, {"kind", object.kind}, {"name", object.name}}},
      {"type", std::string(type)},
      {"reason", reason},
      {"message", message},
      {"count", series.count},
      {"firstTimestamp", seconds_text(series.first)},
      {"lastTimestamp", seconds_text(now.wall)},
      {"source", {{"component", component_}}},
      {"reportingComponent", component_},
      {"reportingInstance", instance_}};
  if (!object.ns.empty()) series.event["involvedObject"]["namespace"] = object.ns;
  if (!object.uid.empty()) series.event["involvedObject"]["uid"] = object.uid;
  if (!was_waiting) wait(key);
}

std::optional<EventLog::Write> EventLog::next(absl::Duration now, bool flushing) {
  const auto due = std::find_if(waiting_.begin(), waiting_.end(),
                                [&](const std::string& key) { return flushing || series_[key].not_before <= now; });
  if (due == waiting_.end()) return std::nullopt;
  Write write{*due, nullptr};
  waiting_.erase(due);
  Series& series = series_[write.series];
  std::swap(write.event, series.event);
  series.not_before = now + kRewrite;
  return write;
}

void EventLog::failed(const Write& write) {
  Series& series = series_[write.series];
  // A newer Event of the series waits, with a higher count.
  if (!series.event.is_null()) return;
  series.event = write.event;
  wait(write.series);
}

void EventLog::wait(const std::string& series) {
  waiting_.push_back(series);
  if (waiting_.size() <= kMaxWaiting) return;
  series_[waiting_.front()].event = nullptr;
  waiting_.pop_front();
}

void EventLog::forget_old(absl::Duration now) {
  if (now < next_cleaning_) return;
  next_cleaning_ = now + absl::Minutes(1);
  for (auto entry = series_.begin(); entry != series_.end();) {
    const bool is_old = entry->second.event.is_null() && now - entry->second.last > kWindow;
    entry = is_old ? series_.erase(entry) : std::next(entry);
  }
}

}  // namespace gleaner::kube
