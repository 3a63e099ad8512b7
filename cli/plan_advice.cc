#include "cli/plan_advice.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/text_table.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

using strategy::Change;
using strategy::Way;

struct Price {
  double total = 0;
  double step = 0;
};

// Returns the price of a way, after a change of the network; nothing: it is not known.
std::optional<Price> price_of(const PricedAdvice& priced, const Way& way, std::optional<Change::Kind> change) {
  if (!priced.prices.has_value() || change == Change::Kind::kHostLinks) return std::nullopt;
  plan::Prices prices = *priced.prices;
  if (change == Change::Kind::kUplinks) prices.uplinks *= 2;
  const double total = prices.total(priced.workers, way.summers);
  return Price{total, prices.of_step(total, std::max(way.seconds, priced.compute_seconds))};
}

std::string name_of(Change::Kind kind) {
  switch (kind) {
    case Change::Kind::kSummer:
      return "one more summer";
    case Change::Kind::kUplinks:
      return "uplinks twice as fast";
    case Change::Kind::kHostLinks:
      return "hosts' links twice as fast";
  }
  return "";
}

nlohmann::ordered_json json_of(const PricedAdvice& priced, const Way& way, std::optional<Change::Kind> change) {
  nlohmann::ordered_json json;
  if (change.has_value()) json["change"] = name_of(*change);
  json["strategy"] = way.strategy;
  json["summers"] = way.summers;
  json["seconds"] = way.seconds;
  if (const auto price = price_of(priced, way, change)) {
    json["price"] = price->total;
    json["step_price"] = price->step;
  }
  return json;
}

std::vector<std::string> row_of(const PricedAdvice& priced, const Way& way, std::optional<Change::Kind> change) {
  std::vector<std::string> row = {way.strategy, absl::StrCat(way.summers), format_seconds(way.seconds)};
  if (!priced.prices.has_value()) return row;
  const auto price = price_of(priced, way, change);
  row.push_back(price ? absl::StrFormat("%.0f $", price->total) : "-");
  row.push_back(price ? absl::StrFormat("%.3g $", price->step) : "-");
  return row;
}

std::string fastest_line(const Way& best) {
  const std::string by = best.summers > 0 ? absl::StrCat(best.strategy, " with ", counted(best.summers, "CPU summer"))
                                          : absl::StrCat(best.strategy, " without CPU summers");
  return absl::StrCat("Fastest     ", by, ": ", format_seconds(best.seconds), " a step\n");
}

}  // namespace

std::string advice_json(const PricedAdvice& priced) {
  auto ways = nlohmann::ordered_json::array(), changes = nlohmann::ordered_json::array();
  for (const Way& way : priced.advice.ways) ways.push_back(json_of(priced, way, std::nullopt));
  for (const Change& change : priced.advice.changes) changes.push_back(json_of(priced, change.fastest, change.kind));
  return absl::StrCat("\"strategies\": ", ways.dump(), ",\n  \"changes\": ", changes.dump());
}

std::string advice_text(const PricedAdvice& priced) {
  std::vector<std::string> head = {"STRATEGY", "SUMMERS", "STEP"};
  if (priced.prices.has_value()) head.insert(head.end(), {"PRICE", "PER STEP"});
  std::vector<std::vector<std::string>> rows = {head};
  for (const Way& way : priced.advice.ways) rows.push_back(row_of(priced, way, std::nullopt));
  const Way& best = priced.advice.ways.front();
  const std::string text = absl::StrCat(fastest_line(best), "\n", align(rows, "lr"));
  if (priced.advice.changes.empty()) {
    return absl::StrCat(text, "\nNo further summer and no faster link makes a step shorter by 1 %.\n");
  }
  head.front() = "BY";
  head.insert(head.begin(), "WOULD HELP");
  rows = {head};
  for (const Change& change : priced.advice.changes) {
    rows.push_back(row_of(priced, change.fastest, change.kind));
    rows.back().insert(rows.back().begin(), absl::StrFormat("%s (%.2f times as fast)", name_of(change.kind),
                                                            best.seconds / change.fastest.seconds));
  }
  return absl::StrCat(text, "\n", align(rows, "llr"));
}

}  // namespace gleaner::cli
