#include "tests/protocol_sim/oracle.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "tests/protocol_sim/dice.h"

namespace gleaner::sim {
namespace {

template <typename T>
T load(const std::vector<std::byte>& bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::vector<std::byte>& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

// Converts a number of the 16-bit floating point format with `exponent_bits` to float, by the definition of the format.
float widen(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits);
  return sign * std::ldexp(static_cast<float>(fraction + (1 << fraction_bits)), exponent - bias - fraction_bits);
}

// Rounds to the nearest number of that format, ties to even: expresses the value in units of its last place and rounds
// with nearbyint().
uint16_t narrow(float value, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent_bits) - 1) << fraction_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1 << (fraction_bits - 1));
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  const double units = std::nearbyint(std::ldexp(std::fabs(static_cast<double>(value)), fraction_bits - exponent));
  // In a normal number, `units` includes the leading one as 1 << fraction_bits, so that a carry increments the
  // exponent.
  const int64_t bits = (int64_t{exponent + bias - 1} << fraction_bits) + static_cast<int64_t>(units);
  return bits >= infinity ? sign | infinity : static_cast<uint16_t>(sign | bits);
}

template <typename Storage, typename Accumulator, typename Widen, typename Narrow>
std::vector<std::byte> reduce_as(const std::vector<std::vector<std::byte>>& contributions, uint32_t divisor,
                                 Widen to_accumulator, Narrow to_storage) {
  std::vector<std::byte> result(contributions[0].size());
  for (size_t i = 0; i < result.size() / sizeof(Storage); ++i) {
    Accumulator sum = to_accumulator(load<Storage>(contributions[0], i));
    for (size_t worker = 1; worker < contributions.size(); ++worker) {
      sum = sum + to_accumulator(load<Storage>(contributions[worker], i));
    }
    if (divisor > 1) sum = sum / static_cast<Accumulator>(divisor);
    store(result, i, to_storage(sum));
  }
  return result;
}

uint64_t random_element(DataType type, Dice& dice) {
  if (dice.chance(0.02)) return dice.next();  // random bits: includes infinities, NaNs and subnormal numbers
  const double value = (static_cast<double>(dice.below(1 << 24)) - (1 << 23)) * std::ldexp(1.0, -int(dice.below(40)));
  switch (type) {
    case DataType::kFloat64:
      return std::bit_cast<uint64_t>(value);
    case DataType::kFloat32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DataType::kFloat16:
      return narrow(static_cast<float>(value), 5);
    case DataType::kBFloat16:
      return narrow(static_cast<float>(value), 8);
    case DataType::kInt32:
      break;
  }
  return dice.next();
}

}  // namespace

std::vector<std::byte> contribution(uint64_t seed, const plan::Tensor& tensor, uint32_t id, uint64_t step,
                                    uint32_t worker) {
  Dice dice(seed ^ splitmix64(step << 32 | uint64_t{id} << 16 | worker));
  std::vector<std::byte> bytes(tensor.bytes());
  const size_t size = size_of(tensor.type);
  for (uint64_t i = 0; i < tensor.elements; ++i) {
    const uint64_t element = random_element(tensor.type, dice);
    std::memcpy(bytes.data() + i * size, &element, size);
  }
  return bytes;
}

std::vector<std::byte> reduce(DataType type, const std::vector<std::vector<std::byte>>& contributions,
                              uint32_t divisor) {
  const auto canonical = [](auto value) { return std::isnan(value) ? std::abs(decltype(value)(NAN)) : value; };
  const auto same = [](auto value) { return value; };
  switch (type) {
    case DataType::kFloat32:
      return reduce_as<float, float>(contributions, divisor, same, canonical);
    case DataType::kFloat64:
      return reduce_as<double, double>(contributions, divisor, same, canonical);
    case DataType::kFloat16:
      return reduce_as<uint16_t, float>(
          contributions, divisor, [](uint16_t bits) { return widen(bits, 5); },
          [](float value) { return narrow(value, 5); });
    case DataType::kBFloat16:
      return reduce_as<uint16_t, float>(
          contributions, divisor, [](uint16_t bits) { return widen(bits, 8); },
          [](float value) { return narrow(value, 8); });
    case DataType::kInt32:
      return reduce_as<uint32_t, uint32_t>(contributions, 1, same, same);
  }
  return {};
}

}  // namespace gleaner::sim
