#include "common/kube/watch_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/kube/object.h"
#include "common/kube/status.h"

namespace gleaner::kube {

bool LineReader::feed(absl::string_view chunk, const std::function<bool(absl::string_view)>& on_line) {
  while (!chunk.empty()) {
    const size_t end = chunk.find('\n');
    if (end == absl::string_view::npos) {
      tail_.append(chunk.data(), chunk.size());
      return true;
    }
    const absl::string_view piece = chunk.substr(0, end);
    chunk.remove_prefix(end + 1);
    bool more = true;
    if (tail_.empty()) {
      more = piece.empty() || on_line(piece);
    } else {
      tail_.append(piece.data(), piece.size());
      const std::string line = std::exchange(tail_, {});
      more = on_line(line);
    }
    if (!more) return false;
  }
  return true;
}

absl::StatusOr<WatchEvent> parse_watch_event(absl::string_view line) {
  auto parsed = parse_object(line);
  if (!parsed.ok())
    return absl::UnavailableError(
        absl::StrCat("a watch sent a line that is not an event: ", parsed.status().message()));
  const std::string type = text_at(*parsed, {"type"});
  const Object* object = find(*parsed, {"object"});
  if (object == nullptr || !object->is_object()) {
    return absl::UnavailableError(absl::StrCat("a watch sent a line that is not an event: ", line.substr(0, 200)));
  }
  if (type == "ERROR") {
    const Object* code = find(*object, {"code"});
    const int http_code = code != nullptr && code->is_number_integer() ? code->get<int>() : 500;
    return status_of_answer(http_code, to_text(*object), Verb::kOther, "a watch");
  }
  WatchEvent event{EventType::kAdded, std::move((*parsed)["object"])};
  if (type == "MODIFIED") {
    event.type = EventType::kModified;
  } else if (type == "DELETED") {
    event.type = EventType::kDeleted;
  } else if (type == "BOOKMARK") {
    event.type = EventType::kBookmark;
  } else if (type != "ADDED") {
    return absl::UnavailableError(absl::StrCat("a watch sent an event of the unknown type '", type, "'"));
  }
  return event;
}

}  // namespace gleaner::kube
