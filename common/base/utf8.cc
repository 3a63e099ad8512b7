#include "common/base/utf8.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gleaner {
namespace {

bool begins_character(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) != 0x80; }

std::string with_replacements(absl::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = first_character(text).bytes;
    absl::StrAppend(&valid, bytes == 0 ? absl::string_view("\xef\xbf\xbd") : text.substr(0, bytes));
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return valid;
}

// Returns at most `most_bytes` bytes of UTF-8, without a part of a character at the end.
absl::string_view cut(absl::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  while (most_bytes > 0 && !begins_character(text[most_bytes])) --most_bytes;
  return text.substr(0, most_bytes);
}

// Returns, for example, "... (39,000 more characters)".
std::string marker(absl::string_view left_out) {
  std::string count = absl::StrCat(std::count_if(left_out.begin(), left_out.end(), begins_character));
  for (size_t at = count.size(); at > 3; at -= 3) count.insert(at - 3, ",");
  return absl::StrCat("... (", count, " more characters)");
}

}  // namespace

Character first_character(absl::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // a smaller code point has a shorter form
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || is_surrogate) return {};
  return {code, bytes};
}

bool is_utf8(absl::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.bytes == 0) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string shortened(absl::string_view text, size_t most_bytes) {
  std::string valid = is_utf8(text) ? std::string(text) : with_replacements(text);
  if (valid.size() <= most_bytes) return valid;
  const size_t most_for_marker = marker(valid).size();  // no marker of a part is longer
  if (most_for_marker > most_bytes / 2) return std::string(cut(valid, most_bytes));
  const absl::string_view kept = cut(valid, most_bytes - most_for_marker);
  return absl::StrCat(kept, marker(absl::string_view(valid).substr(kept.size())));
}

}  // namespace gleaner
