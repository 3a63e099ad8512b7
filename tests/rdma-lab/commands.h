// Runs shell commands for tests in the lab's guest.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace gleaner::transport::rdma {

// Runs a command. If it fails, the test fails.
inline void run(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

// Runs a command and returns its standard output and standard error together.
inline std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> piece;
  for (size_t got; (got = fread(piece.data(), 1, piece.size(), pipe)) > 0;) text.append(piece.data(), got);
  pclose(pipe);
  return text;
}

}  // namespace gleaner::transport::rdma
