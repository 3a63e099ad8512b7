#include "comm-lib/device/device.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::device {

std::string name_of(Place place) { return place.is_host() ? "the host" : absl::StrCat("GPU ", place.ordinal); }

absl::Status check_place(const Event& event, Place place) {
  if (event.place() == place) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("expected an event of ", name_of(place), "; this one is of ", name_of(event.place())));
}

absl::Status check_recorded(const Event& event, Place place) {
  GLN_RETURN_IF_ERROR(check_place(event, place));
  if (event.is_recorded()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the event was not recorded, so a stream would not wait for it; record it first");
}

}  // namespace gleaner::device
