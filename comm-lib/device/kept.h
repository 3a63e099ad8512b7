// Keeps objects whose memory a GPU may still use until the process ends.
#pragma once

#include <memory>

namespace gleaner::device {

// Thread safe.
void keep(std::shared_ptr<void> in_use);

}  // namespace gleaner::device
