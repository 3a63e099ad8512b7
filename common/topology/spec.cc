#include "common/topology/spec.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace gleaner::topology {
namespace {

using Build = absl::StatusOr<Topology> (*)(const std::vector<uint32_t>& counts, const LinkSpeed& speed);

struct RegularKind {
  absl::string_view name;
  std::vector<absl::string_view> counts;  // what the numbers after the colon count
  absl::string_view example;
  Build build;
};

const std::vector<RegularKind>& kinds() {
  static const std::vector<RegularKind> all = {
      {"star", {"hosts"}, "star:16", [](const auto& n, const LinkSpeed& speed) { return star(n[0], speed); }},
      {"fat-tree",
       {"ports"},
       "fat-tree:4",
       [](const auto& n, const LinkSpeed& speed) { return fat_tree(n[0], speed); }},
      {"bigraph",
       {"hosts at a switch", "switches"},
       "bigraph:4x8",
       [](const auto& n, const LinkSpeed& speed) { return bigraph(n[0], n[1], speed); }},
      {"racks", {"racks", "hosts in a rack"}, "racks:4x8", [](const auto& n, const LinkSpeed& speed) {
         return racks(n[0], n[1], speed);
       }}};
  return all;
}

// Returns the kind whose name stands before the colon; nullptr if there is none.
const RegularKind* kind_of(absl::string_view spec) {
  const size_t colon = spec.find(':');
  if (colon == absl::string_view::npos) return nullptr;
  const auto found = std::find_if(kinds().begin(), kinds().end(),
                                  [&](const RegularKind& kind) { return kind.name == spec.substr(0, colon); });
  return found == kinds().end() ? nullptr : &*found;
}

}  // namespace

bool is_spec(absl::string_view text) { return kind_of(text) != nullptr; }

absl::StatusOr<Topology> topology_of_spec(absl::string_view spec, const LinkSpeed& speed) {
  const RegularKind* kind = kind_of(spec);
  const auto wrong = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat(quote(spec), ": ", parts...));
  };
  if (kind == nullptr) return wrong("expected ", kSpecs);
  const std::vector<absl::string_view> texts = absl::StrSplit(spec.substr(kind->name.size() + 1), 'x');
  if (texts.size() != kind->counts.size()) {
    return wrong("expected ", kind->counts.size() == 1 ? "one number" : "two numbers with an x between them",
                 "; write for example ", kind->example);
  }
  std::vector<uint32_t> counts;
  for (size_t i = 0; i < texts.size(); ++i) {
    uint32_t count = 0;
    const bool digits = std::all_of(texts[i].begin(), texts[i].end(), [](char c) { return absl::ascii_isdigit(c); });
    if (!digits || !absl::SimpleAtoi(texts[i], &count)) {
      return wrong("the number of ", kind->counts[i], " is ", quote(texts[i]), "; write a whole number, for example ",
                   kind->example);
    }
    counts.push_back(count);
  }
  auto made = kind->build(counts, speed);
  if (!made.ok()) return wrong(made.status().message(), " (for example ", kind->example, ")");
  return made;
}

}  // namespace gleaner::topology
