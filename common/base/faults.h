// Macros for fault points: places in the protocol cores where the simulator (tests/protocol_sim) interferes. The
// simulator has its own build of the cores, with GLEANER_FAULTS defined. In every other build the macros expand to
// nothing.
//
//   GLN_RARE("...")      marks a rarely taken branch; the simulator counts how often it is reached
//   GLN_INJECT("...")    true when the simulator wants a rare but legal event to happen here
//   GLN_MUTATION("...")  true when the simulator breaks the protocol here, which its checks must detect
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

// Returns all sites of this program, in no particular order. The list is complete before main() begins.
inline std::vector<Site*>& sites() {
  static std::vector<Site*> all;
  return all;
}

// Returns the function that decides whether the event of a site happens. Belongs to one thread.
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
class FaultPoint {
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

#define GLN_RARE(name) static_cast<void>(::gleaner::faults::FaultPoint<name, ::gleaner::faults::Kind::kRare>::reach())
#define GLN_INJECT(name) (::gleaner::faults::FaultPoint<name, ::gleaner::faults::Kind::kInject>::reach())
#define GLN_MUTATION(name) (::gleaner::faults::FaultPoint<name, ::gleaner::faults::Kind::kMutation>::reach())

#else

namespace gleaner::faults {
inline constexpr bool kNever = false;
}  // namespace gleaner::faults

#define GLN_RARE(name) static_cast<void>(0)
#define GLN_INJECT(name) (::gleaner::faults::kNever)
#define GLN_MUTATION(name) (::gleaner::faults::kNever)

#endif
