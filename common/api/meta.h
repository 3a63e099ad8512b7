// ObjectMeta is the metadata of a Kubernetes object, as far as Gleaner reads it. Condition is an entry of its
// conditions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gleaner::api {

class Fields;

inline constexpr char kGroup[] = "gleaner.dev";
inline constexpr char kVersion[] = "v1alpha1";
inline constexpr char kApiVersion[] = "gleaner.dev/v1alpha1";

// Labels on every object that belongs to a job.
inline constexpr char kJobLabel[] = "gleaner.dev/job";          // name of the TrainingJob
inline constexpr char kRoleLabel[] = "gleaner.dev/role";        // worker | summer
inline constexpr char kIndexLabel[] = "gleaner.dev/index";      // worker or summer index
inline constexpr char kAttemptLabel[] = "gleaner.dev/attempt";  // status.attempt when the pod was created
inline constexpr char kRankLabel[] = "gleaner.dev/rank";        // of a worker's pod: the rank of its local rank 0
// A node's label with its NIC's speed each way ("25Gbit"), for NICs whose speed the agent can't read.
inline constexpr char kNodeBandwidthLabel[] = "gleaner.dev/bandwidth";
// The extended resource that only summers request. kube-scheduler calls the extender for pods that request it.
inline constexpr char kSummerResource[] = "gleaner.dev/summer";

struct OwnerReference {
  std::string api_version, kind, name, uid;
  bool controller = false;
  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
  std::string name, ns, uid, resource_version;
  int64_t generation = 0;
  absl::Time creation_time = absl::InfinitePast();
  std::optional<absl::Time> deletion_time;
  std::map<std::string, std::string> labels, annotations;
  std::vector<OwnerReference> owners;
  std::string key() const { return ns.empty() ? name : ns + "/" + name; }
  std::string label(const std::string& key) const;  // empty if it has no such label
  bool operator==(const ObjectMeta&) const = default;
};

// metav1.Condition.
struct Condition {
  std::string type;
  bool status = false;  // "True" | "False"
  std::string reason;   // CamelCase
  std::string message;
  absl::Time last_transition = absl::UnixEpoch();
  int64_t observed_generation = 0;
  bool operator==(const Condition&) const = default;
};

absl::StatusOr<ObjectMeta> parse_meta(const nlohmann::json& object);
nlohmann::json to_json(const ObjectMeta& meta);  // contents of "metadata", without the fields that only the server sets
nlohmann::json to_json(const Condition& condition);
absl::StatusOr<Condition> parse_condition(const nlohmann::json& object);
void read_condition(const Fields& fields, Condition& condition);  // for use with Fields::list()

// Sets the condition of this type and returns whether it has changed. The transition time changes only with the status.
bool set_condition(std::vector<Condition>& conditions, Condition condition, absl::Time now);
const Condition* find_condition(const std::vector<Condition>& conditions, absl::string_view type);
// Returns whether the condition of this type is True. A condition that is absent is not.
bool holds(const std::vector<Condition>& conditions, absl::string_view type);

// RFC 3339, in whole seconds, as Kubernetes writes times.
std::string format_time(absl::Time time);
absl::StatusOr<absl::Time> parse_time(absl::string_view text);

// Checks that `key` may be the key of a Kubernetes label: a name of up to 63 letters, digits, '-', '_' and '.', which
// begins and ends with a letter or digit, after an optional prefix, a DNS subdomain of up to 253 characters, and '/'.
// InvalidArgument quotes the key and says what was expected.
absl::Status check_label_key(absl::string_view key);

// Parses a Kubernetes quantity: "250m" is 0.25, "512Mi" is 536870912.
absl::StatusOr<double> parse_quantity(absl::string_view text);

}  // namespace gleaner::api
