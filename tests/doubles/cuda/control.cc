#include <algorithm>
#include <cstring>

#include "tests/doubles/cuda/call.h"

using namespace gleaner::cuda_double;  // NOLINT

namespace {

template <typename Body>
auto with_machine(Body body) {
  std::unique_lock<std::mutex> lock(machine().mutex());
  return body(machine());
}

}  // namespace

extern "C" {

GLN_EXPORT void gln_double_reset(uint64_t seed, int devices, int version) {
  with_machine([&](Machine& m) { m.reset(seed, devices, version); });
}

GLN_EXPORT void gln_double_fail_next(const char* function, int result) {
  with_machine([&](Machine& m) { m.fail_next(function, static_cast<CUresult>(result)); });
}

GLN_EXPORT void gln_double_hold(CUstream stream, int is_held) {
  with_machine([&](Machine& m) { m.hold(*m.find(stream), is_held != 0); });
}

GLN_EXPORT void gln_double_capture(CUstream stream, int is_capturing) {
  with_machine([&](Machine& m) { m.find(stream)->is_capturing = is_capturing != 0; });
}

GLN_EXPORT void gln_double_fail_kernel(CUstream stream, int result) {
  with_machine([&](Machine& m) {
    m.submit(m.find(stream), {}, {.run = [&m, stream, result](const Clock&) {
               with_machine([&](Machine&) { m.fail(*m.find(stream)->context, static_cast<CUresult>(result)); });
             }});
  });
}

GLN_EXPORT int gln_double_count_device_memory() {
  return with_machine([](Machine& m) { return static_cast<int>(m.memory.count(Kind::kDevice)); });
}

GLN_EXPORT int gln_double_take_findings(char* text, size_t bytes) {
  return with_machine([&](Machine& m) {
    const std::vector<std::string> findings = m.accesses.take_findings();
    std::string all;
    for (const std::string& finding : findings) all += finding + "\n";
    const size_t copied = std::min(all.size(), bytes - 1);
    std::memcpy(text, all.data(), copied);
    text[copied] = 0;
    return static_cast<int>(findings.size());
  });
}

}  // extern "C"
