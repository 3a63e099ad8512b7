#include "common/api/meta.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/api/fields.h"
#include "common/api/text.h"
#include "common/base/names.h"
#include "common/base/utf8.h"

namespace gleaner::api {
namespace {

bool is_lower_or_digit(char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); }

bool is_label_name(absl::string_view name) {
  if (name.empty() || name.size() > 63 || !absl::ascii_isalnum(name.front()) || !absl::ascii_isalnum(name.back())) {
    return false;
  }
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.'; });
}

// Returns whether `name` is a subdomain by RFC 1123, as Kubernetes defines it.
bool is_subdomain(absl::string_view name) {
  if (name.size() > 253) return false;
  for (const absl::string_view part : absl::StrSplit(name, '.')) {
    if (part.empty() || !is_lower_or_digit(part.front()) || !is_lower_or_digit(part.back())) return false;
    if (!std::all_of(part.begin(), part.end(), [](char c) { return is_lower_or_digit(c) || c == '-'; })) return false;
  }
  return true;
}

using nlohmann::json;

constexpr std::pair<absl::string_view, bool> kConditionStatus[] = {{"True", true}, {"False", false}};

void read_owner(const Fields& fields, OwnerReference& owner) {
  fields.text("apiVersion", owner.api_version);
  fields.text("kind", owner.kind);
  fields.text("name", owner.name);
  fields.text("uid", owner.uid);
  fields.flag("controller", owner.controller);
}

json to_json(const OwnerReference& owner) {
  json object = {{"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}};
  if (owner.controller) {
    object["controller"] = true;
    object["blockOwnerDeletion"] = true;
  }
  return object;
}

}  // namespace

std::string ObjectMeta::label(const std::string& key) const {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string() : found->second;
}

absl::StatusOr<ObjectMeta> parse_meta(const json& object) {
  absl::Status status;
  const Fields fields = Fields(object, "", status).object("metadata");
  ObjectMeta meta;
  fields.text("name", meta.name);
  fields.text("namespace", meta.ns);
  fields.text("uid", meta.uid);
  fields.text("resourceVersion", meta.resource_version);
  fields.number("generation", meta.generation);
  fields.time("creationTimestamp", meta.creation_time);
  fields.time("deletionTimestamp", meta.deletion_time);
  fields.text_map("labels", meta.labels);
  fields.text_map("annotations", meta.annotations);
  fields.list("ownerReferences", meta.owners, read_owner);
  if (!status.ok()) return status;
  return meta;
}

json to_json(const ObjectMeta& meta) {
  json object = {{"name", meta.name}};
  if (!meta.ns.empty()) object["namespace"] = meta.ns;
  if (!meta.labels.empty()) object["labels"] = meta.labels;
  if (!meta.annotations.empty()) object["annotations"] = meta.annotations;
  for (const OwnerReference& owner : meta.owners) object["ownerReferences"].push_back(to_json(owner));
  return object;
}

json to_json(const Condition& condition) {
  return {{"type", required_text(condition.type, kMaxWord)},
          {"status", name_in<bool>(kConditionStatus, condition.status).data()},
          {"reason", required_text(condition.reason, kMaxReason)},
          {"message", shortened(condition.message, kMaxMessage)},
          {"lastTransitionTime", format_time(condition.last_transition)},
          {"observedGeneration", condition.observed_generation}};
}

absl::StatusOr<Condition> parse_condition(const json& object) {
  absl::Status status;
  Condition condition;
  read_condition(Fields(object, "", status), condition);
  if (!status.ok()) return status;
  return condition;
}

void read_condition(const Fields& fields, Condition& condition) {
  fields.text("type", condition.type);
  fields.choice<bool>("status", kConditionStatus, condition.status);
  fields.text("reason", condition.reason);
  fields.text("message", condition.message);
  fields.time("lastTransitionTime", condition.last_transition);
  fields.number("observedGeneration", condition.observed_generation);
}

bool set_condition(std::vector<Condition>& conditions, Condition condition, absl::Time now) {
  const auto old = std::find_if(conditions.begin(), conditions.end(),
                                [&](const Condition& other) { return other.type == condition.type; });
  // The API server stores whole seconds, and texts up to its limits; so an object that is read back compares equal.
  condition.last_transition = absl::FromUnixSeconds(absl::ToUnixSeconds(now));
  condition.reason = required_text(condition.reason, kMaxReason);
  condition.message = shortened(condition.message, kMaxMessage);
  if (old == conditions.end()) {
    conditions.push_back(std::move(condition));
    return true;
  }
  if (old->status == condition.status) condition.last_transition = old->last_transition;
  if (*old == condition) return false;
  *old = std::move(condition);
  return true;
}

const Condition* find_condition(const std::vector<Condition>& conditions, absl::string_view type) {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

bool holds(const std::vector<Condition>& conditions, absl::string_view type) {
  const Condition* condition = find_condition(conditions, type);
  return condition != nullptr && condition->status;
}

absl::Status check_label_key(absl::string_view key) {
  const size_t slash = key.find('/');
  const bool has_prefix = slash != absl::string_view::npos;
  if (is_label_name(has_prefix ? key.substr(slash + 1) : key) && (!has_prefix || is_subdomain(key.substr(0, slash)))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      quote(key), " is not the key of a Kubernetes label; expected for example topology.kubernetes.io/zone"));
}

}  // namespace gleaner::api
