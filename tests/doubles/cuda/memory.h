// Memory holds the allocations of the double. Device memory has two mappings: the program has the address of one that
// it can't touch, and copies use the other. The Machine's mutex guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "tests/doubles/cuda/accesses.h"

namespace gleaner::cuda_double {

// kRegistered: memory of the program that the driver has pinned.
enum class Kind { kPinned, kRegistered, kManaged, kDevice };

// Unmaps its memory when the last operation that uses it is gone.
struct Allocation {
  Allocation(Kind memory_kind, int device_ordinal, size_t size);
  // Maps memory of `file`, which another process has shared.
  Allocation(int device_ordinal, size_t size, int file);
  Allocation(void* registered, size_t size);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  bool is_valid() const { return address != nullptr; }
  Range range() const { return {reinterpret_cast<uint64_t>(address), reinterpret_cast<uint64_t>(address) + bytes}; }

  const Kind kind;
  const int ordinal;
  const size_t bytes;
  void* address = nullptr;             // for the program; null: no memory is left
  unsigned char* touchable = nullptr;  // the same memory for copies
  int file = -1;                       // of both mappings

 private:
  void map_file();
};

class Memory {
 public:
  // Returns memory full of kPoison; null: no memory is left.
  void* allocate(Kind kind, int ordinal, size_t bytes);
  // Maps the memory of a file that another process has shared; null: it can't.
  void* open(int ordinal, size_t bytes, int file);
  // Adds memory of the program as kRegistered; false if a part of it is there already.
  bool add(void* address, size_t bytes);
  // Returns the allocation that has all these bytes; null if there is none.
  std::shared_ptr<Allocation> find(uint64_t address, size_t bytes) const;
  // Frees an allocation by its first byte; false if there is none of that kind.
  bool free(Kind kind, uint64_t address);
  // Returns the number of allocations, including those of other processes that are open here.
  size_t count(Kind kind) const;

 private:
  std::map<uint64_t, std::shared_ptr<Allocation>> allocations_;
};

}  // namespace gleaner::cuda_double
