// Program: runs a program under test, sends signals to it, waits for its end, and collects its output in files.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/paths.h"

namespace gleaner {

// A temporary folder, which is removed with its contents when the object is destroyed.
class Scratch {
 public:
  Scratch() {
    std::string path = "/tmp/gleaner-test-XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

// Waits until `condition` returns true, for a minute at most. Returns whether it did.
inline bool eventually(const std::function<bool()>& condition) {
  for (const absl::Time end = absl::Now() + absl::Minutes(1); absl::Now() < end;
       absl::SleepFor(absl::Milliseconds(20))) {
    if (condition()) return true;
  }
  return condition();
}

inline const std::string kGleaner = bin_dir() + "/gleaner";

class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const std::string output = scratch_ / "output", errors = scratch_ / "errors";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDOUT_FILENO);
      ::dup2(::open(errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), STDERR_FILENO);
      ::execv(pointers[0], pointers.data());
      ::_exit(125);
    }
  }
  ~Program() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // Waits for the program's end. Returns its exit status, or 128 + the signal that killed it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  std::string output() const { return contents(scratch_ / "output"); }
  std::string errors() const { return contents(scratch_ / "errors"); }

 private:
  Scratch scratch_;
  pid_t pid_ = -1;
};

struct Ended {
  int status;
  std::string output, errors;
};

inline Ended run_to_end(std::vector<std::string> arguments) {
  Program program(std::move(arguments));
  const int status = program.wait();
  return {status, program.output(), program.errors()};
}

}  // namespace gleaner
