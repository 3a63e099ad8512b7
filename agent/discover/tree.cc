#include "agent/discover/tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gleaner::discover {
namespace {

constexpr size_t kMostBytes = size_t{256} * 1024;

std::string canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? "" : real.string();
}

}  // namespace

Tree::Tree(std::string root) : root_(canonical(root)) {
  if (root_.empty()) root_ = std::move(root);
  while (absl::EndsWith(root_, "/")) root_.pop_back();
}

std::string Tree::full(absl::string_view path) const { return absl::StrCat(root_, "/", path); }

std::optional<std::string> Tree::read(absl::string_view path) const {
  std::ifstream file(full(path), std::ios::binary);
  if (!file) return std::nullopt;
  std::string text(kMostBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof())) return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  absl::StripAsciiWhitespace(&text);
  return text;
}

std::optional<double> Tree::read_number(absl::string_view path) const {
  const std::optional<std::string> text = read(path);
  if (!text.has_value()) return std::nullopt;
  uint64_t hex = 0;
  if (absl::StartsWith(*text, "0x")) {
    if (!absl::SimpleHexAtoi(*text, &hex)) return std::nullopt;
    return static_cast<double>(hex);
  }
  double value = 0;
  if (!absl::SimpleAtod(*text, &value)) return std::nullopt;
  return value;
}

std::vector<std::string> Tree::list(absl::string_view folder) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(full(folder), error);
  for (const std::filesystem::directory_iterator end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool Tree::exists(absl::string_view path) const {
  std::error_code error;
  return std::filesystem::exists(full(path), error);
}

std::string Tree::real_path(absl::string_view path) const {
  const std::string real = canonical(full(path));
  absl::string_view inside = real;
  if (!absl::ConsumePrefix(&inside, absl::StrCat(root_, "/"))) return "";
  return std::string(inside);
}

absl::string_view last_part(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace gleaner::discover
