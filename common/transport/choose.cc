#include "common/transport/choose.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace gleaner::transport {
namespace {

const Endpoint* find(const std::vector<Endpoint>& endpoints, Kind kind) {
  const auto found = std::find_if(endpoints.begin(), endpoints.end(),
                                  [kind](const Endpoint& endpoint) { return endpoint.kind == kind; });
  return found == endpoints.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<Preferences> parse_preferences(absl::string_view text) {
  const auto invalid = [text](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': ", why,
                                                   "; write auto, or names from best to worst, such as shm,tcp or "
                                                   "rdma; a list without tcp allows no other transport"));
  };
  Preferences preferences;
  if (text.empty() || text == "auto") return preferences;
  preferences.kinds.clear();
  preferences.named = true;
  const std::vector<absl::string_view> names = absl::StrSplit(text, ',');
  for (size_t i = 0; i < names.size(); ++i) {
    absl::string_view name = absl::StripAsciiWhitespace(names[i]);
    const bool is_last = absl::ConsumeSuffix(&name, "!");
    const auto kind = parse_kind(name);
    if (!kind.ok()) return invalid(kind.status().message());
    if (is_last && i + 1 < names.size()) return invalid(absl::StrCat("nothing can follow '", name, "!'"));
    if (std::find(preferences.kinds.begin(), preferences.kinds.end(), *kind) != preferences.kinds.end()) {
      return invalid(absl::StrCat(name, " is listed twice"));
    }
    preferences.kinds.push_back(*kind);
  }
  return preferences;
}

std::string Choice::why_not() const {
  return absl::StrJoin(excluded, "; ", [](std::string* out, const Excluded& one) {
    absl::StrAppend(out, name_of(one.kind), ": ", one.why);
  });
}

Choice choose(const std::vector<Endpoint>& mine, const std::vector<Endpoint>& theirs) {
  Choice choice;
  for (const Endpoint& here : mine) {
    const Endpoint* const there = find(theirs, here.kind);
    if (there == nullptr) {
      choice.excluded.push_back({here.kind, "the peer does not offer it"});
    } else if (here.host != there->host) {
      choice.excluded.push_back({here.kind, "the two members do not see the same directory"});
    } else {
      choice.order.push_back(*there);
    }
  }
  for (const Endpoint& there : theirs) {
    if (find(mine, there.kind) == nullptr) choice.excluded.push_back({there.kind, "this member does not use it"});
  }
  return choice;
}

}  // namespace gleaner::transport
