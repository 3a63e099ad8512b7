#include "cli/bench/tensors.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cli/bench/data.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kCacheLine = 64;

size_t round_up(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

}  // namespace

absl::StatusOr<AlignedBytes> AlignedBytes::make(size_t size) {
  const size_t rounded = round_up(std::max<size_t>(size, 1), kPage);
  AlignedBytes bytes;
  bytes.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded)));
  if (bytes.memory_ == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", size, " bytes; use fewer or smaller tensors"));
  }
  std::memset(bytes.memory_.get(), 0, rounded);  // also maps the pages before the measurement begins
  return bytes;
}

absl::Status check_memory(uint64_t bytes) {
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes <= machine) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this needs ", format_bytes(static_cast<double>(bytes)), " of memory, and the machine has ",
                   format_bytes(static_cast<double>(machine)), "; use fewer or smaller tensors"));
}

absl::StatusOr<BenchTensors> BenchTensors::make(std::vector<plan::Tensor> tensors) {
  BenchTensors made;
  size_t offset = 0;
  uint64_t element = 0;
  for (const plan::Tensor& tensor : tensors) {
    made.extents_.push_back({offset, element});
    offset += round_up(tensor.bytes(), kCacheLine);
    element += tensor.elements;
    made.bytes_ += tensor.bytes();
  }
  made.tensors_ = std::move(tensors);
  GLN_RETURN_IF_ERROR(check_memory(2 * offset));
  GLN_ASSIGN_OR_RETURN(made.input_, AlignedBytes::make(offset));
  GLN_ASSIGN_OR_RETURN(made.output_, AlignedBytes::make(offset));
  return made;
}

void BenchTensors::fill_input(uint64_t seed, uint64_t step, uint32_t rank) {
  const BenchData data(seed, step, rank);
  for (size_t i = 0; i < tensors_.size(); ++i) data.fill(tensors_[i].type, extents_[i].first_element, input(i));
}

absl::Status BenchTensors::check_output(uint64_t step, const Check& check) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    GLN_ASSIGN_OR_RETURN(const auto mismatch, check(i, extents_[i].first_element, output(i)));
    if (!mismatch) continue;
    return absl::DataLossError(absl::StrCat("wrong sum at step ", step, ": tensor '", tensors_[i].name, "', element ",
                                            mismatch->element, ": expected ", mismatch->expected, ", got ",
                                            mismatch->got));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BenchTensors::output_sha256() {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  bool ok = hash != nullptr && EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) == 1;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    ok = ok && EVP_DigestUpdate(hash.get(), output(i).data(), output(i).size()) == 1;
  }
  if (!ok || EVP_DigestFinal_ex(hash.get(), digest, &size) != 1) {
    return absl::InternalError("OpenSSL can't compute a SHA-256");
  }
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

}  // namespace gleaner::cli
