#include "common/base/names.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace gleaner {
namespace {

constexpr size_t kMaxQuotedBytes = 64;

// The first character of a text: its code point, and its length in bytes. No bytes: the text does not begin with UTF-8.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

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

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code <= 0x9f); }

}  // namespace

bool is_utf8(absl::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.bytes == 0) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string quote(absl::string_view text) {
  std::string quoted = "'";
  absl::string_view rest = text;
  while (!rest.empty() && text.size() - rest.size() < kMaxQuotedBytes) {
    const Character character = first_character(rest);
    const size_t bytes = character.bytes == 0 ? 1 : character.bytes;
    const bool is_shown = character.bytes > 0 && !is_control(character.code);
    for (const char byte : rest.substr(0, bytes)) {
      if (is_shown) {
        quoted.push_back(byte);
      } else {
        absl::StrAppend(&quoted, "\\x", absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2));
      }
    }
    rest.remove_prefix(bytes);
  }
  return quoted + (rest.empty() ? "'" : "...'");
}

absl::Status check_name(absl::string_view what, absl::string_view name, size_t max_bytes) {
  const auto invalid = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(what, name.empty() ? "" : absl::StrCat(" ", quote(name)), " ", why,
                                                   "; expected at most ", max_bytes,
                                                   " bytes of UTF-8 without control characters"));
  };
  if (name.empty()) return invalid("is empty");
  if (name.size() > max_bytes) return invalid(absl::StrCat("has ", name.size(), " bytes"));
  for (absl::string_view rest = name; !rest.empty();) {
    const Character character = first_character(rest);
    const size_t place = name.size() - rest.size() + 1;
    if (character.bytes == 0) return invalid(absl::StrCat("is not UTF-8 from byte ", place, " on"));
    if (is_control(character.code)) return invalid(absl::StrCat("has a control character at byte ", place));
    rest.remove_prefix(character.bytes);
  }
  return absl::OkStatus();
}

}  // namespace gleaner
