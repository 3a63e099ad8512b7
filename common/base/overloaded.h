// Overloaded combines functions that take different types into one, for std::visit:
//   std::visit(Overloaded{[](const A&) { … }, [](const B&) { … }}, variant);
#pragma once

namespace gleaner {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace gleaner
