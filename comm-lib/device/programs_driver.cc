#include "comm-lib/device/programs_driver.h"

#include <link.h>

#include <utility>

namespace gleaner::device {
namespace {

unsigned long long count_loaded_libraries() {
  unsigned long long count = 0;
  const auto note = [](dl_phdr_info* info, size_t, void* data) {
    *static_cast<unsigned long long*>(data) = info->dlpi_adds;
    return 1;  // the first library tells the number of all
  };
  dl_iterate_phdr(note, &count);
  return count;
}

}  // namespace

const Driver* ProgramsDriver::find() {
  if (driver_ != nullptr) return driver_.get();
  if (const auto libraries = count_loaded_libraries(); std::exchange(libraries_, libraries) != libraries) {
    driver_ = Driver::find_loaded(library_);
  }
  return driver_.get();
}

}  // namespace gleaner::device
