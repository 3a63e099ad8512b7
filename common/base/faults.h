// Places in the protocol cores where tests/sim interferes. It has a copy of the cores in which GLEANER_FAULTS is
// defined; everywhere else these are nothing at all.
//
//   GLN_RARE("...")      a branch that is seldom taken, counted: a run shows that it got there
//   GLN_INJECT("...")    true when something that may happen at any time, and seldom does, shall happen here now
//   GLN_MUTATION("...")  true when the protocol shall be broken here, which the simulator has to notice
#pragma once

#ifdef GLEANER_FAULTS

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gleaner::faults {

enum class Kind { kRare, kInject, kMutation };

struct Site {
  const char* name;
  Kind kind;
  uint64_t reached = 0;
  uint64_t taken = 0;
};

// Of this program, in no order; they are there before main() begins.
inline std::vector<Site*>& sites() {
  static std::vector<Site*> all;
  return all;
}

// Whether what a site stands for shall happen. One thread.
inline std::function<bool(const Site&)>& chooser() {
  static std::function<bool(const Site&)> choose = [](const Site&) { return false; };
  return choose;
}

template <size_t N>
struct Name {
  char text[N];
  consteval Name(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT(google-explicit-constructor)
};

template <Name kName, Kind kKind>
class Place {
 public:
  static bool reach() {
    static_cast<void>(&listed_);
    ++site_.reached;
    if (kKind == Kind::kRare || !chooser()(site_)) return false;
    ++site_.taken;
    return true;
  }

 private:
  struct Listed {
    Listed() { sites().push_back(&site_); }
  };
  static inline Site site_{kName.text, kKind};
  static inline Listed listed_;
};

}  // namespace gleaner::faults

#define GLN_RARE(name) static_cast<void>(::gleaner::faults::Place<name, ::gleaner::faults::Kind::kRare>::reach())
#define GLN_INJECT(name) (::gleaner::faults::Place<name, ::gleaner::faults::Kind::kInject>::reach())
#define GLN_MUTATION(name) (::gleaner::faults::Place<name, ::gleaner::faults::Kind::kMutation>::reach())

#else

namespace gleaner::faults {
inline constexpr bool kNever = false;
}  // namespace gleaner::faults

#define GLN_RARE(name) static_cast<void>(0)
#define GLN_INJECT(name) (::gleaner::faults::kNever)
#define GLN_MUTATION(name) (::gleaner::faults::kNever)

#endif
