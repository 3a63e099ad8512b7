#include "tests/unit/machine/machine_files.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/machine/json.h"
#include "tests/paths.h"

namespace gleaner::machine {

std::string text_of_file(const std::string& name) {
  const auto text =
      read_file(absl::StrCat(source_dir(), "/tests/unit/machine/machines/", name, ".json"), "the machine");
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

Machine machine_file(const std::string& name) {
  absl::StatusOr<Machine> machine = parse_machine(text_of_file(name));
  EXPECT_TRUE(machine.ok()) << machine.status();
  return machine.ok() ? *std::move(machine) : Machine();
}

Choice choice_for(const Machine& machine, const Step& step) {
  absl::StatusOr<Choice> choice = choose(machine, step);
  EXPECT_TRUE(choice.ok()) << choice.status();
  return choice.ok() ? *std::move(choice) : Choice{.candidates = std::vector<Candidate>(6)};
}

const Link& link_of(const Candidate& candidate, LinkKind kind, const std::string& device) {
  for (const Link& link : candidate.links) {
    if (link.kind == kind && link.device == device) return link;
  }
  static const Link kNone;
  ADD_FAILURE() << "no such link of " << device;
  return kNone;
}

const Candidate& candidate_of(const Choice& choice, Way way) { return choice.candidates[static_cast<size_t>(way)]; }

}  // namespace gleaner::machine
