#include "scheduler-ext/http/wire.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::extender {
namespace {

using nlohmann::json;

absl::StatusOr<json> parse(const std::string& body) {
  try {
    json document = json::parse(body);
    if (!document.is_object()) return absl::InvalidArgumentError("expected an object (ExtenderArgs)");
    return document;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("expected JSON: ", error.what()));
  }
}

absl::StatusOr<std::vector<std::string>> names_of(json& list) {
  if (!list.is_array()) return absl::InvalidArgumentError("NodeNames: expected a list of names");
  std::vector<std::string> names;
  names.reserve(list.size());
  for (json& name : list) {
    if (!name.is_string())
      return absl::InvalidArgumentError(absl::StrCat("NodeNames[", names.size(), "]: expected a name"));
    names.push_back(std::move(name.get_ref<std::string&>()));
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> names_of_nodes(const json& list) {
  const auto items = list.is_object() ? list.find("items") : list.end();
  if (items == list.end() || !(items->is_array() || items->is_null())) {
    return absl::InvalidArgumentError("Nodes: expected a NodeList");
  }
  std::vector<std::string> names;
  names.reserve(items->size());
  for (const json& node : *items) {
    const json::json_pointer where("/metadata/name");
    if (!node.is_object() || !node.contains(where) || !node[where].is_string()) {
      return absl::InvalidArgumentError(absl::StrCat("Nodes.items[", names.size(), "].metadata.name: expected a name"));
    }
    names.push_back(node[where].get<std::string>());
  }
  return names;
}

// Names rarely need escapes, so most are written without the JSON library.
void append_quoted(std::string& out, const std::string& text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      absl::StrAppend(&out, json(text).dump(-1, ' ', true, json::error_handler_t::replace));
      return;
    }
  }
  absl::StrAppend(&out, "\"", text, "\"");
}

void append_failures(std::string& out, const std::vector<std::string>& names, const std::vector<std::string>& reasons) {
  absl::string_view separator = "{";
  for (size_t i = 0; i < names.size(); ++i) {
    if (reasons[i].empty()) continue;
    absl::StrAppend(&out, separator);
    append_quoted(out, names[i]);
    absl::StrAppend(&out, ":");
    append_quoted(out, reasons[i]);
    separator = ",";
  }
  absl::StrAppend(&out, separator == "{" ? "{}" : "}");
}

void append_names(std::string& out, const std::vector<std::string>& names, const std::vector<std::string>& reasons) {
  absl::string_view separator = "[";
  for (size_t i = 0; i < names.size(); ++i) {
    if (!reasons[i].empty()) continue;
    absl::StrAppend(&out, separator);
    append_quoted(out, names[i]);
    separator = ",";
  }
  absl::StrAppend(&out, separator == "[" ? "[]" : "]");
}

}  // namespace

absl::StatusOr<Args> parse_args(const std::string& body) {
  GLN_ASSIGN_OR_RETURN(json document, parse(body));
  const auto pod = document.find("Pod");
  if (pod == document.end() || !pod->is_object()) return absl::InvalidArgumentError("Pod: expected an object");
  Args args;
  auto parsed = placement::parse_pod(*pod);
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat("Pod.", parsed.status().message()));
  args.pod = *std::move(parsed);
  if (args.pod.role != "worker" && args.pod.role != "summer") args.pod.role.clear();
  if (const auto names = document.find("NodeNames"); names != document.end() && !names->is_null()) {
    GLN_ASSIGN_OR_RETURN(args.names, names_of(*names));
    return args;
  }
  const auto nodes = document.find("Nodes");
  if (nodes == document.end() || nodes->is_null()) {
    return absl::InvalidArgumentError("expected NodeNames or Nodes");
  }
  args.by_name = false;
  GLN_ASSIGN_OR_RETURN(args.names, names_of_nodes(*nodes));
  args.nodes = std::move(*nodes);
  return args;
}

std::string filter_result(Args args, const std::vector<std::string>& reasons) {
  std::string out;
  out.reserve(64 * args.names.size() + 256);
  if (args.by_name) {
    absl::StrAppend(&out, "{\"Nodes\":null,\"NodeNames\":");
    append_names(out, args.names, reasons);
  } else {
    json passed = json::array();
    for (size_t i = 0; i < args.names.size(); ++i) {
      if (reasons[i].empty()) passed.push_back(std::move(args.nodes["items"][i]));
    }
    args.nodes["items"] = std::move(passed);
    absl::StrAppend(&out, "{\"Nodes\":", args.nodes.dump(-1, ' ', false, json::error_handler_t::replace),
                    ",\"NodeNames\":null");
  }
  absl::StrAppend(&out, ",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":");
  append_failures(out, args.names, reasons);
  absl::StrAppend(&out, ",\"Error\":\"\"}");
  return out;
}

std::string host_priorities(const std::vector<std::string>& names, const std::vector<int>& scores) {
  std::string out;
  out.reserve(48 * names.size() + 2);
  absl::string_view separator = "[";
  for (size_t i = 0; i < names.size(); ++i) {
    absl::StrAppend(&out, separator, "{\"Host\":");
    append_quoted(out, names[i]);
    absl::StrAppend(&out, ",\"Score\":", scores[i], "}");
    separator = ",";
  }
  absl::StrAppend(&out, separator == "[" ? "[]" : "]");
  return out;
}

}  // namespace gleaner::extender
