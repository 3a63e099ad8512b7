// Functions about texts in UTF-8, as RFC 3629 defines it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace gleaner {

// A character of a text: its code point, and its length in bytes. No bytes: it is not UTF-8.
struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

// Returns the first character of `text`, which must not be empty.
Character first_character(absl::string_view text);

bool is_utf8(absl::string_view text);

// Returns `text` as an interface with a limit takes it: UTF-8 of at most `most_bytes` bytes, and thus of at most as
// many characters. A longer text loses its end, and says how much: "... (39,000 more characters)", unless that would
// take more than half of the limit. Each byte that is not UTF-8 becomes U+FFFD. shortened() returns its own results
// unchanged.
std::string shortened(absl::string_view text, size_t most_bytes);

}  // namespace gleaner
