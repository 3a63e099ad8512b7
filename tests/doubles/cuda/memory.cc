#include "tests/doubles/cuda/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tests/doubles/cuda/cuda_double.h"

namespace gleaner::cuda_double {
namespace {

void* map(int file, size_t bytes, int protection) {
  void* mapped = mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
  return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace

Allocation::Allocation(Kind memory_kind, int device_ordinal, size_t size)
    : kind(memory_kind), ordinal(device_ordinal), bytes(size) {
  file = memfd_create("cuda_double", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) return;
  map_file();
  if (is_valid()) std::memset(touchable, kPoison, bytes);
}

Allocation::Allocation(int device_ordinal, size_t size, int shared_file)
    : kind(Kind::kDevice), ordinal(device_ordinal), bytes(size), file(shared_file) {
  map_file();
}

void Allocation::map_file() {
  touchable = static_cast<unsigned char*>(map(file, bytes, PROT_READ | PROT_WRITE));
  address = kind == Kind::kDevice ? map(file, bytes, PROT_NONE) : touchable;
}

Allocation::Allocation(void* registered, size_t size)
    : kind(Kind::kRegistered),
      ordinal(0),
      bytes(size),
      address(registered),
      touchable(static_cast<unsigned char*>(registered)) {}

Allocation::~Allocation() {
  if (kind == Kind::kRegistered) return;
  if (file >= 0) close(file);
  if (address != nullptr && address != touchable) munmap(address, bytes);
  if (touchable != nullptr) munmap(touchable, bytes);
}

void* Memory::allocate(Kind kind, int ordinal, size_t bytes) {
  auto made = std::make_shared<Allocation>(kind, ordinal, bytes);
  if (!made->is_valid()) return nullptr;
  allocations_[made->range().begin] = made;
  return made->address;
}

void* Memory::open(int ordinal, size_t bytes, int file) {
  auto made = std::make_shared<Allocation>(ordinal, bytes, file);
  if (!made->is_valid()) return nullptr;
  allocations_[made->range().begin] = made;
  return made->address;
}

bool Memory::add(void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(address);
  const auto after = allocations_.lower_bound(begin + bytes);
  if (after != allocations_.begin() && std::prev(after)->second->range().end > begin) return false;
  allocations_[begin] = std::make_shared<Allocation>(address, bytes);
  return true;
}

std::shared_ptr<Allocation> Memory::find(uint64_t address, size_t bytes) const {
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  const auto& found = std::prev(after)->second;
  return address + bytes <= found->range().end ? found : nullptr;
}

bool Memory::free(Kind kind, uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end() || found->second->kind != kind) return false;
  allocations_.erase(found);
  return true;
}

size_t Memory::count(Kind kind) const {
  return static_cast<size_t>(
      std::ranges::count_if(allocations_, [kind](const auto& each) { return each.second->kind == kind; }));
}

}  // namespace gleaner::cuda_double
