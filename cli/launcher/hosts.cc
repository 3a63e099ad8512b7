#include "cli/launcher/hosts.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/names.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"

namespace gleaner::launcher {
namespace {

using Json = nlohmann::json;

absl::StatusOr<Host> parse_host(const Json& entry, absl::string_view where) {
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  };
  if (!entry.is_object()) return invalid("expected {\"address\": ..., \"prefix\": [...]}");
  Host host;
  const auto address = entry.find("address");
  if (address == entry.end() || !address->is_string() || address->get_ref<const std::string&>().empty()) {
    return invalid("expected an \"address\" that is a string");
  }
  host.address = address->get<std::string>();
  const auto prefix = entry.find("prefix");
  if (prefix == entry.end()) return host;
  if (!prefix->is_array()) return invalid("expected a \"prefix\" that is a list of strings");
  for (const Json& word : *prefix) {
    if (!word.is_string()) return invalid("expected a \"prefix\" that is a list of strings");
    host.prefix.push_back(word.get<std::string>());
  }
  return host;
}

absl::StatusOr<std::vector<Host>> parse_list(const Json& file, const std::string& key, uint32_t needed) {
  std::vector<Host> hosts;
  const auto list = file.find(key);
  if (list != file.end()) {
    if (!list->is_array()) return absl::InvalidArgumentError(absl::StrCat("expected \"", key, "\" to be a list"));
    for (size_t i = 0; i < list->size(); ++i) {
      GLN_ASSIGN_OR_RETURN(Host host, parse_host((*list)[i], absl::StrCat(key, "[", i, "]")));
      hosts.push_back(std::move(host));
    }
  }
  if (hosts.size() >= needed) return hosts;
  return absl::InvalidArgumentError(absl::StrCat("expected at least ", needed, " ", key, "; it has ", hosts.size()));
}

absl::StatusOr<Hosts> parse(const Json& file, uint32_t workers, uint32_t summers) {
  if (!file.is_object()) return absl::InvalidArgumentError("expected an object with \"coordinator\", \"workers\"");
  Hosts hosts{{loopback_host(), {}}, {}, {}};
  if (const auto coordinator = file.find("coordinator"); coordinator != file.end()) {
    GLN_ASSIGN_OR_RETURN(hosts.coordinator, parse_host(*coordinator, "coordinator"));
  }
  GLN_ASSIGN_OR_RETURN(hosts.workers, parse_list(file, "workers", workers));
  GLN_ASSIGN_OR_RETURN(hosts.summers, parse_list(file, "summers", summers));
  return hosts;
}

}  // namespace

Hosts this_machine(uint32_t workers, uint32_t summers) {
  const Host host{loopback_host(), {}};
  return {host, std::vector<Host>(workers, host), std::vector<Host>(summers, host)};
}

absl::StatusOr<Hosts> read_hosts(const std::string& path, uint32_t workers, uint32_t summers) {
  GLN_ASSIGN_OR_RETURN(const std::string text, read_file(path, "the list of hosts"));
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not JSON: ", error.what()));
  }
  auto hosts = parse(json, workers, summers);
  if (!hosts.ok()) return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", hosts.status().message()));
  return hosts;
}

std::string warn_of_loopback(const Hosts& hosts, const Address& coordinator) {
  if (!is_loopback(coordinator.host)) return "";
  for (const std::vector<Host>* const list : {&hosts.workers, &hosts.summers}) {
    for (const Host& host : *list) {
      if (host.prefix.empty() || is_loopback(host.address)) continue;
      return absl::StrCat("the coordinator listens on ", coordinator.to_string(),
                          ", which leads each host to itself; members on other hosts, such as ", quote(host.address),
                          ", can join only if the \"address\" of \"coordinator\" is one that they reach");
    }
  }
  return "";
}

std::vector<std::string> on_host(const Host& host, const std::vector<std::string>& variables,
                                 const std::vector<std::string>& arguments) {
  std::vector<std::string> result = host.prefix;
  if (!host.prefix.empty() && !variables.empty()) {
    result.push_back("env");
    result.insert(result.end(), variables.begin(), variables.end());
  }
  result.insert(result.end(), arguments.begin(), arguments.end());
  return result;
}

}  // namespace gleaner::launcher
