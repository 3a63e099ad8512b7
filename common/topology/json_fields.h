// Reads fields of JSON files of topologies, probes and machines (common/machine). The errors are InvalidArgument and
// say where the value is, what it is, and what was expected.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gleaner::topology {

using Json = nlohmann::json;
// Makes the name of a value's place for an error message, such as "link 3: \"bandwidth\"".
using Where = absl::FunctionRef<std::string()>;

// Parses a text. The error has the line and column.
absl::StatusOr<Json> parse_json(absl::string_view text);

// Checks that `value` is an object which has all `required` fields, and beside them only `optional` ones. `what` is the
// object's name in messages: "link 3".
absl::Status check_fields(const Json& value, absl::string_view what, std::initializer_list<absl::string_view> required,
                          std::initializer_list<absl::string_view> optional = {});

// Returns a list. `of_what` describes its entries.
absl::StatusOr<const Json::array_t*> read_list(const Json& value, absl::string_view what, absl::string_view of_what);

// Returns a text that is not empty.
absl::StatusOr<std::string> read_name(const Json& value, Where where);

// Returns bits per second, from a number or a text such as "100Gbit".
absl::StatusOr<double> read_bandwidth(const Json& value, Where where);

// Returns seconds, from a number of microseconds.
absl::StatusOr<double> read_latency(const Json& value, Where where);

}  // namespace gleaner::topology
