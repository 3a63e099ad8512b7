#include "tests/protocol_sim/causes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"

namespace gleaner::sim {
namespace {

bool is_digit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }

bool names(absl::string_view text, absl::string_view name) {
  for (size_t at = text.find(name); at != absl::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == text.size() || !is_digit(name.back()) || !is_digit(text[end])) return true;
  }
  return false;
}

// Returns the part of the error that has to name the cause: of "worker 1 at ADDRESS is lost: worker 0 reports: …" only
// what comes before " is lost", without the name of a rank that reports it.
absl::string_view subject_of(absl::string_view text) {
  const size_t end = text.find(" is lost");
  if (end == absl::string_view::npos) return text;
  const absl::string_view subject = text.substr(0, end);
  const size_t reporter = subject.rfind(" reports: ");
  return reporter == absl::string_view::npos ? subject : subject.substr(reporter);
}

}  // namespace

void Causes::add(std::string name, Nanoseconds until) { causes_.push_back({std::move(name), until + kSlack}); }

void Causes::check(absl::string_view member, const absl::Status& error, Nanoseconds now, Report& report) const {
  report.trace(now, member, " ends with an error: ", error.message());
  bool is_late = false;
  // Plans write "worker/0" where people read "worker 0".
  const std::string text = absl::StrReplaceAll(error.message(), {{"worker/", "worker "}, {"summer/", "summer "}});
  for (const Cause& cause : causes_) {
    if (!names(subject_of(text), cause.name)) continue;
    if (now <= cause.until) return;
    is_late = true;
  }
  report.fail(member, is_late ? " ends too late with an error: " : " ends with an error that names no loss: ",
              error.ToString());
}

}  // namespace gleaner::sim
