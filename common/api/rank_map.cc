#include "common/api/rank_map.h"

#include <algorithm>

#include "common/api/fields.h"
#include "common/api/text.h"
#include "common/api/training_job.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

constexpr std::pair<absl::string_view, RankOrder> kRankOrders[] = {{"Topology", RankOrder::kTopology},
                                                                   {"Identity", RankOrder::kIdentity}};

// Returns whether `workers` has each index below its size once.
bool is_order(std::vector<uint32_t> workers) {
  std::sort(workers.begin(), workers.end());
  for (size_t i = 0; i < workers.size(); ++i) {
    if (workers[i] != i) return false;
  }
  return true;
}

void read_map_group(const Fields& fields, RankMapGroup& group) {
  fields.text("name", group.name);
  std::string workers;
  fields.text("workers", workers);
  absl::StatusOr<std::vector<uint32_t>> parsed = parse_indexes(workers, kMaxReplicas);
  if (!parsed.ok()) return fields.fail("workers", parsed.status().message());
  group.workers = *std::move(parsed);
  fields.whole("uplinkBitsPerSecond", group.uplink_bits_per_second);
}

json to_json(const RankMapGroup& group) {
  json object = {{"name", shortened(group.name, kMaxGroup)}, {"workers", indexes_text(group.workers)}};
  if (group.uplink_bits_per_second >= 1) object["uplinkBitsPerSecond"] = whole_number(group.uplink_bits_per_second);
  return object;
}

}  // namespace

absl::string_view name_of(RankOrder order) { return name_in<RankOrder>(kRankOrders, order); }

void read_rank_order(const Fields& fields, absl::string_view name, RankOrder& order) {
  fields.choice<RankOrder>(name, kRankOrders, order);
}

void read_rank_map(const Fields& fields, std::optional<RankMap>& map) {
  if (!fields.present()) return;
  map.emplace();
  fields.number("attempt", map->attempt);
  read_rank_order(fields, "order", map->order);
  fields.numbers("workers", map->workers, 0, kMaxReplicas - 1);
  if (!is_order(map->workers)) fields.wrong("workers", "each index from 0 to the number of workers less one, once");
  fields.text("message", map->message);
  fields.list("groups", map->groups, read_map_group);
  if (fields.find("ringMicroseconds") == nullptr) return;
  map->ring.emplace();
  fields.micros("ringMicroseconds", map->ring->seconds);
  fields.micros("identityRingMicroseconds", map->ring->identity_seconds);
}

json to_json(const RankMap& map) {
  json object = {{"attempt", map.attempt}, {"order", std::string(name_of(map.order))}};
  if (!map.workers.empty()) object["workers"] = map.workers;
  if (!map.message.empty()) object["message"] = shortened(map.message, kMaxMessage);
  for (const RankMapGroup& group : map.groups) object["groups"].push_back(to_json(group));
  if (map.ring.has_value()) {
    object["ringMicroseconds"] = whole_number(map.ring->seconds * 1e6);
    object["identityRingMicroseconds"] = whole_number(map.ring->identity_seconds * 1e6);
  }
  return object;
}

}  // namespace gleaner::api
