// The entries of a container's `env`. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace gleaner::reconcile {

inline nlohmann::json variable(const char* name, std::string value) {
  return {{"name", name}, {"value", std::move(value)}};
}

}  // namespace gleaner::reconcile
