#include "cli/cluster/rank_view.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/api/text.h"
#include "common/base/first_few.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

constexpr size_t kNamed = 5;  // workers and ranges of ranks of a group that a line names

uint32_t count_workers(const api::ReductionPlanSpec& spec) {
  return static_cast<uint32_t>(std::ranges::count(spec.members, "worker", &api::PlanMember::role));
}

// Returns the names of workers with these numbers.
std::vector<std::string> names_of(const std::vector<uint32_t>& numbers, const api::ReductionPlanSpec& spec) {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const uint32_t number : numbers) names.push_back(spec.members[number].name);
  return names;
}

// Returns the ranks of workers with these numbers: "rank 4", "ranks 0-7, 16-23".
std::string ranks_of_workers(const std::vector<uint32_t>& numbers, uint32_t local_ranks) {
  std::vector<uint32_t> ranks;
  for (const uint32_t number : numbers) {
    for (uint32_t local = 0; local < local_ranks; ++local) ranks.push_back(number * local_ranks + local);
  }
  const std::vector<std::string> ranges = absl::StrSplit(api::indexes_text(ranks), ',');
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", first_few(ranges, kNamed));
}

std::string group_text(const api::RankMapGroup& group, const api::ReductionPlanSpec& spec, uint32_t local_ranks) {
  std::string text = absl::StrCat(group.name.empty() ? "in no group" : group.name, ": ",
                                  first_few(names_of(group.workers, spec), kNamed), " (",
                                  ranks_of_workers(group.workers, local_ranks), ")");
  if (group.name.empty()) return text;
  const double uplink = group.uplink_bits_per_second;
  return absl::StrCat(text, ", uplink ", uplink > 0 ? format_bits_per_second(uplink) : "unknown, taken to carry all");
}

}  // namespace

std::string ranks_reason(const api::RankMap& map) {
  absl::string_view message = map.message;
  if (map.order == api::RankOrder::kIdentity) {
    return absl::StrCat("are the workers' indexes", message.empty() ? "" : ", since ", message);
  }
  absl::ConsumePrefix(&message, "ranks ");
  return message.empty() ? "follow the groups of the workers' machines" : std::string(message);
}

std::string ranks_of(const api::PlanMember& member, uint32_t local_ranks) {
  if (!member.rank.has_value()) return "-";
  return local_ranks == 1 ? absl::StrCat(*member.rank)
                          : absl::StrCat(*member.rank, "-", *member.rank + local_ranks - 1);
}

absl::Status check_ranks(const api::ReductionPlanSpec& spec) {
  if (!spec.rank_map.has_value()) return absl::OkStatus();
  const uint32_t workers = count_workers(spec);
  for (const api::RankMapGroup& group : spec.rank_map->groups) {
    for (const uint32_t number : group.workers) {
      if (number < workers) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("the group '", group.name, "' of its rank map has worker number ", number, " of ", workers));
    }
  }
  return absl::OkStatus();
}

std::string ranks_text(const api::ReductionPlanSpec& spec, uint32_t local_ranks) {
  if (!spec.rank_map.has_value()) return "";
  std::string text = absl::StrCat("Ranks      ", ranks_reason(*spec.rank_map), "\n");
  if (spec.rank_map->groups.empty()) return text;
  std::vector<std::string> groups;
  for (const api::RankMapGroup& group : spec.rank_map->groups) {
    groups.push_back(group_text(group, spec, local_ranks));
  }
  absl::StrAppend(&text, "Network    ", first_few(groups, kNamed, "; "), "\n");
  return text;
}

nlohmann::json ranks_json(const api::ReductionPlanSpec& spec) {
  using nlohmann::json;
  if (!spec.rank_map.has_value()) return nullptr;
  const api::RankMap& map = *spec.rank_map;
  json groups = json::array();
  for (const api::RankMapGroup& group : map.groups) {
    const double uplink = group.uplink_bits_per_second;
    groups.push_back({{"name", group.name},
                      {"workers", names_of(group.workers, spec)},
                      {"uplink_bits_per_second", uplink > 0 ? json(uplink) : json()}});
  }
  json object = {{"order", std::string(api::name_of(map.order))},
                 {"message", map.message},
                 {"groups", std::move(groups)},
                 {"ring_seconds", nullptr},
                 {"identity_ring_seconds", nullptr}};
  if (map.ring.has_value()) {
    object["ring_seconds"] = map.ring->seconds;
    object["identity_ring_seconds"] = map.ring->identity_seconds;
  }
  return object;
}

}  // namespace gleaner::cli
