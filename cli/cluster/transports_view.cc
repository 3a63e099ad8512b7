#include "cli/cluster/transports_view.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/transport/choose.h"

namespace gleaner::cli {
namespace {

constexpr size_t kMostNames = 8;

// Parses texts such as "shm:1f3a9c2b" and "tcp".
std::vector<transport::Endpoint> endpoints_of(const std::vector<std::string>& texts) {
  std::vector<transport::Endpoint> endpoints;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
    if (const auto kind = transport::parse_kind(parts.first); kind.ok()) endpoints.push_back({*kind, parts.second, {}});
  }
  if (texts.empty())
    endpoints.push_back({});  // a plan of an older version does not list transports, so the member uses TCP
  return endpoints;
}

// The transport between each two members, computed once for each pair of different offers: thousands of members have
// only a few different offers (lists of transports).
class Offers {
 public:
  explicit Offers(const std::vector<api::PlanMember>& members) {
    std::map<std::vector<std::string>, size_t> numbers;
    for (const api::PlanMember& member : members) {
      const auto [found, is_new] = numbers.try_emplace(member.transports, offers_.size());
      if (is_new) offers_.push_back(endpoints_of(member.transports));
      number_.push_back(found->second);
    }
    for (const auto& from : offers_) {
      for (const auto& to : offers_) {
        const std::vector<transport::Endpoint> order = transport::choose(from, to).order;
        chosen_.push_back(order.empty() ? "" : std::string(transport::name_of(order.front().kind)));
      }
    }
  }
  const std::string& chosen(size_t from, size_t to) const {
    return chosen_[number_[from] * offers_.size() + number_[to]];
  }

 private:
  std::vector<std::vector<transport::Endpoint>> offers_;
  std::vector<size_t> number_;       // by member: index into offers_
  std::vector<std::string> chosen_;  // by number of the sender * offers_.size() + number of the receiver
};

void add(std::map<std::string, TransportPairs>& by_name, const std::string& name, const std::string& from,
         const char* between, const std::string& to) {
  TransportPairs& pairs = by_name[name];
  pairs.transport = name;
  if (pairs.count++ < kMostNames) pairs.first.push_back(absl::StrCat(from, between, to));
}

}  // namespace

std::vector<TransportPairs> transports_of(const std::vector<api::PlanMember>& members) {
  const auto is_silent = [](const api::PlanMember& member) { return member.transports.empty(); };
  if (std::all_of(members.begin(), members.end(), is_silent)) return {};
  const Offers offers(members);
  std::map<std::string, TransportPairs> by_name;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].role != "worker") continue;
    for (size_t j = i + 1; j < members.size(); ++j) {
      const std::string& there = offers.chosen(i, j);
      const std::string& back = members[j].role == "worker" ? offers.chosen(j, i) : there;
      const bool alike = there == back;
      add(by_name, there, members[i].name, alike ? " – " : " → ", members[j].name);
      if (!alike) add(by_name, back, members[j].name, " → ", members[i].name);
    }
  }
  std::vector<TransportPairs> pairs;
  pairs.reserve(by_name.size());
  for (auto& [name, found] : by_name) pairs.push_back(std::move(found));
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.count < b.count; });
  return pairs;
}

std::string transports_text(const std::vector<TransportPairs>& pairs) {
  if (pairs.empty()) return "";
  std::vector<std::string> parts;
  for (const TransportPairs& some : pairs) {
    const std::string name = some.transport.empty() ? "none in common" : some.transport;
    std::string who = absl::StrJoin(some.first, ", ");
    if (some.count > some.first.size()) absl::StrAppend(&who, " and ", some.count - some.first.size(), " more");
    if (&some == &pairs.back() && !some.transport.empty()) who = pairs.size() == 1 ? "all" : "the rest";
    parts.push_back(absl::StrCat(name, ": ", who));
  }
  return absl::StrCat("Transports ", absl::StrJoin(parts, "; "), "\n");
}

nlohmann::json transports_json(const std::vector<TransportPairs>& pairs) {
  nlohmann::json list = nlohmann::json::array();
  for (const TransportPairs& some : pairs) {
    list.push_back({{"transport", some.transport}, {"pairs", some.count}, {"first", some.first}});
  }
  return list;
}

}  // namespace gleaner::cli
