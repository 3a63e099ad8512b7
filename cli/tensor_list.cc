#include "cli/tensor_list.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

using Json = nlohmann::json;

absl::StatusOr<plan::Tensor> make_tensor(std::string name, uint64_t bytes, std::optional<DataType> type) {
  if (!type && bytes % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor '", name, "' has ", bytes,
        " bytes, which is not a whole number of elements of any data type; the smallest ones have 2 bytes"));
  }
  if (!type) type = bytes % 4 == 0 ? DataType::kFloat32 : DataType::kFloat16;
  if (bytes % size_of(*type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", name, "' has ", bytes, " bytes, which is not a whole number of ", name_of(*type),
                     " elements of ", size_of(*type), " bytes; choose another data type or size"));
  }
  return plan::Tensor{.name = std::move(name), .elements = bytes / size_of(*type), .type = *type};
}

absl::StatusOr<plan::Tensor> parse_tensor(const Json& entry, std::optional<DataType> type_of_all) {
  if (!entry.is_object()) return absl::InvalidArgumentError("expected {\"name\": ..., \"bytes\": ...}");
  const auto name = entry.find("name");
  if (name == entry.end() || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return absl::InvalidArgumentError("expected a \"name\" that is a string");
  }
  const auto& text = name->get_ref<const std::string&>();
  const auto bytes = entry.find("bytes");
  if (bytes == entry.end() || !bytes->is_number_unsigned()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", text, "': expected \"bytes\", a whole number from 0 up",
                                                   bytes == entry.end() ? "" : absl::StrCat("; got ", bytes->dump())));
  }
  std::optional<DataType> type;
  if (const auto dtype = entry.find("dtype"); dtype != entry.end()) {
    type = dtype->is_string() ? parse_data_type(dtype->get_ref<const std::string&>()) : std::nullopt;
    if (!type) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", text, "': expected \"dtype\" fp32, fp64, fp16, bf16 or int32; got ", dtype->dump()));
    }
  }
  return make_tensor(text, bytes->get<uint64_t>(), type_of_all ? type_of_all : type);
}

}  // namespace

absl::StatusOr<std::vector<plan::Tensor>> read_tensors(const std::string& path, std::optional<DataType> type) {
  GLN_ASSIGN_OR_RETURN(const std::string text, read_file(path, "the list of tensors"));
  const auto invalid = [&](const auto&... parts) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", parts...));
  };
  Json list;
  try {
    list = Json::parse(text);
  } catch (const Json::parse_error& error) {
    // The text is "[json.exception.parse_error.101] parse error at line 2, ...; last read: ...". Its last part is cut
    // off, since it may contain arbitrary bytes of the file.
    absl::string_view what = error.what();
    what = what.substr(0, what.find("; last read"));
    return invalid("malformed JSON: ", what.substr(what.find("] ") + 2));
  }
  if (!list.is_array()) return invalid("expected a JSON list of {\"name\", \"bytes\"}; got ", list.type_name());
  std::vector<plan::Tensor> tensors;
  tensors.reserve(list.size());
  for (const Json& entry : list) {
    absl::StatusOr<plan::Tensor> tensor = parse_tensor(entry, type);
    if (!tensor.ok()) return invalid("entry ", tensors.size(), ": ", tensor.status().message());
    tensors.push_back(*std::move(tensor));
  }
  const absl::Status status = plan::validate(tensors);
  if (!status.ok()) return invalid(status.message());
  return tensors;
}

absl::StatusOr<std::vector<plan::Tensor>> one_tensor(const std::string& size, std::optional<DataType> type) {
  GLN_ASSIGN_OR_RETURN(const uint64_t bytes, parse_bytes(size));
  GLN_ASSIGN_OR_RETURN(plan::Tensor tensor, make_tensor("tensor", bytes, type));
  return std::vector<plan::Tensor>{std::move(tensor)};
}

}  // namespace gleaner::cli
