// What every Kubernetes object has, as far as Gleaner reads it, and conditions.
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

namespace gleaner::types {

class Fields;

inline constexpr char kGroup[] = "gleaner.dev";
inline constexpr char kVersion[] = "v1alpha1";
inline constexpr char kApiVersion[] = "gleaner.dev/v1alpha1";

// Labels on every object that belongs to a job.
inline constexpr char kJobLabel[] = "gleaner.dev/job";          // the TrainingJob's name
inline constexpr char kRoleLabel[] = "gleaner.dev/role";        // worker | summer
inline constexpr char kIndexLabel[] = "gleaner.dev/index";      // worker or summer index
inline constexpr char kAttemptLabel[] = "gleaner.dev/attempt";  // status.attempt when the pod was made
// A node's label with its NIC speed each way ("25Gbit"), where the agent can't read it.
inline constexpr char kNodeBandwidthLabel[] = "gleaner.dev/bandwidth";
// The extended resource that only summers request: it leads the scheduler to the extender.
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
  std::string label(const std::string& key) const;  // empty: it has none of that key
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
nlohmann::json to_json(const ObjectMeta& meta);  // under "metadata", without what only the server sets
nlohmann::json to_json(const Condition& condition);
absl::StatusOr<Condition> parse_condition(const nlohmann::json& object);
void read_condition(const Fields& fields, Condition& condition);  // for lists of them

// Sets or changes the condition of this type; the transition time moves only when the status does. True: it changed.
bool set_condition(std::vector<Condition>& conditions, Condition condition, absl::Time now);
const Condition* find_condition(const std::vector<Condition>& conditions, absl::string_view type);

// RFC 3339, as Kubernetes writes times (whole seconds).
std::string format_time(absl::Time time);
absl::StatusOr<absl::Time> parse_time(absl::string_view text);

// Kubernetes quantities: "250m" -> 0.25, "512Mi" -> 536870912.
absl::StatusOr<double> parse_quantity(absl::string_view text);

}  // namespace gleaner::types
