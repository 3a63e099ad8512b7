// An image that the double of the driver takes, so that tests over it need no nvcc.
#pragma once

#include <array>
#include <cstddef>

namespace gleaner::device {

inline constexpr std::array kDoubleImage = {std::byte{0x50}, std::byte{0xED}, std::byte{0x55}, std::byte{0xBA}};

}  // namespace gleaner::device
