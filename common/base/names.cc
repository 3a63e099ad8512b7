#include "common/base/names.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"

namespace gleaner {
namespace {

constexpr size_t kMaxQuotedBytes = 64;

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code <= 0x9f); }

}  // namespace

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
