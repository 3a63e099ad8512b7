// The image of a build without nvcc.
#include "comm-lib/device/kernels/image.h"

namespace gleaner::device {

ConstBytes kernel_image() { return {}; }

}  // namespace gleaner::device
