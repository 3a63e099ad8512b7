// The image of a build with nvcc. CMake gives the file's path.
#include "comm-lib/device/kernels/image.h"

asm(R"(
  .pushsection .rodata
  .balign 64
  .hidden gleaner_kernel_image_begin
  .globl gleaner_kernel_image_begin
gleaner_kernel_image_begin:
  .incbin ")" GLEANER_KERNEL_IMAGE R"("
  .hidden gleaner_kernel_image_end
  .globl gleaner_kernel_image_end
gleaner_kernel_image_end:
  .popsection
)");

extern "C" const std::byte gleaner_kernel_image_begin[];
extern "C" const std::byte gleaner_kernel_image_end[];

namespace gleaner::device {

ConstBytes kernel_image() { return {gleaner_kernel_image_begin, gleaner_kernel_image_end}; }

}  // namespace gleaner::device
