// Injected tells the fake of NVML what to report, and which functions fail.
#pragma once

#include <cstdlib>

namespace gleaner::discover {

// Sets the variable of the fake while it lives; fake_nvml.cc describes `words`.
class Injected {
 public:
  explicit Injected(const char* words) { setenv("GLEANER_FAKE_NVML", words, 1); }
  ~Injected() { unsetenv("GLEANER_FAKE_NVML"); }
  Injected(const Injected&) = delete;
  Injected& operator=(const Injected&) = delete;
};

}  // namespace gleaner::discover
