#include "cli/networks/rank_map_file.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace gleaner::cli {
namespace {

using Json = nlohmann::json;

// Sets the host of a rank, which must be none yet.
absl::Status place(std::vector<std::string>& hosts, uint64_t rank, std::string host) {
  if (rank >= hosts.size() || !hosts[rank].empty()) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " occurs twice or is too large: expected ranks 0 to ",
                                                   hosts.size() - 1, ", each once"));
  }
  hosts[rank] = std::move(host);
  return absl::OkStatus();
}

// Returns the names of the hosts of ranks 0, 1, ... in {"ranks": [{"rank", "host"}]}.
absl::StatusOr<std::vector<std::string>> parse_json(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  constexpr char kExpected[] = "expected {\"ranks\": [{\"rank\": 0, \"host\": NAME}, ...]}";
  if (json.is_discarded()) return absl::InvalidArgumentError(absl::StrCat("malformed JSON; ", kExpected));
  if (!json.is_object() || !json.contains("ranks") || !json["ranks"].is_array()) {
    return absl::InvalidArgumentError(kExpected);
  }
  std::vector<std::string> hosts(json["ranks"].size());
  for (const Json& entry : json["ranks"]) {
    const bool has_fields = entry.is_object() && entry.contains("rank") && entry["rank"].is_number_unsigned() &&
                            entry.contains("host") && entry["host"].is_string();
    if (!has_fields) return absl::InvalidArgumentError(kExpected);
    GLN_RETURN_IF_ERROR(place(hosts, entry["rank"].get<uint64_t>(), entry["host"].get<std::string>()));
  }
  return hosts;
}

using Words = std::vector<std::string>;

// Returns the words of each line that has some, without comments.
std::vector<Words> words_of(const std::string& text) {
  std::vector<Words> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    Words words = absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (!words.empty()) lines.push_back(std::move(words));
  }
  return lines;
}

// Parses "rank R=HOST ...".
std::optional<std::pair<uint64_t, std::string>> parse_rank(const Words& line) {
  if (line.size() < 2 || line[0] != "rank") return std::nullopt;
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line[1], absl::MaxSplits('=', 1));
  uint64_t rank = 0;
  if (!absl::SimpleAtoi(parts.first, &rank) || parts.second.empty()) return std::nullopt;
  return std::pair(rank, std::string(parts.second));
}

// Returns the names of the hosts of ranks 0, 1, ... in the lines "rank R=HOST ..." or "HOST ...".
absl::StatusOr<std::vector<std::string>> parse_lines(const std::string& text) {
  const std::vector<Words> lines = words_of(text);
  std::vector<std::string> hosts;
  if (lines.empty() || !parse_rank(lines.front()).has_value()) {
    for (const Words& line : lines) hosts.push_back(line.front());
    return hosts;
  }
  hosts.resize(lines.size());
  for (const Words& line : lines) {
    const auto rank = parse_rank(line);
    if (!rank.has_value()) return absl::InvalidArgumentError("expected lines \"rank R=HOST\", as the first one is");
    GLN_RETURN_IF_ERROR(place(hosts, rank->first, rank->second));
  }
  return hosts;
}

}  // namespace

absl::StatusOr<std::vector<uint32_t>> read_rank_map(const std::string& path, const topology::Topology& topology) {
  GLN_ASSIGN_OR_RETURN(const std::string text, read_file(path, "the rank map"));
  const auto wrong = [&](absl::string_view message) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", message));
  };
  const absl::string_view content = absl::StripLeadingAsciiWhitespace(text);
  if (content.empty()) return wrong("the file is empty");
  const bool is_json = content.front() == '{' || content.front() == '[';
  const absl::StatusOr<std::vector<std::string>> hosts = is_json ? parse_json(text) : parse_lines(text);
  if (!hosts.ok()) return wrong(hosts.status().message());
  absl::flat_hash_map<std::string, uint32_t> index_of;
  for (uint32_t host = 0; host < topology.host_count(); ++host) index_of[topology.name(host)] = host;
  std::vector<uint32_t> map;
  for (const std::string& name : *hosts) {
    const auto found = index_of.find(name);
    if (found == index_of.end()) {
      return wrong(absl::StrCat("rank ", map.size(), " is on host ", quote(name),
                                ", which the topology does not have; its hosts are ", topology.name(0), ", ..."));
    }
    map.push_back(found->second);
  }
  return map;
}

}  // namespace gleaner::cli
