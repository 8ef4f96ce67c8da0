#include "headrace/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/json.h"
#include "headrace/base/text.h"
#include "headrace/formats/safetensors_layout.h"

namespace headrace::formats {
namespace {

constexpr std::array kDtypes{
    SafetensorsDtype{"BOOL", 8},    SafetensorsDtype{"F4", 4},      SafetensorsDtype{"F6_E2M3", 6},
    SafetensorsDtype{"F6_E3M2", 6}, SafetensorsDtype{"U8", 8},      SafetensorsDtype{"I8", 8},
    SafetensorsDtype{"F8_E5M2", 8}, SafetensorsDtype{"F8_E4M3", 8}, SafetensorsDtype{"F8_E8M0", 8},
    SafetensorsDtype{"I16", 16},    SafetensorsDtype{"U16", 16},    SafetensorsDtype{"F16", 16},
    SafetensorsDtype{"BF16", 16},   SafetensorsDtype{"I32", 32},    SafetensorsDtype{"U32", 32},
    SafetensorsDtype{"F32", 32},    SafetensorsDtype{"C64", 64},    SafetensorsDtype{"F64", 64},
    SafetensorsDtype{"I64", 64},    SafetensorsDtype{"U64", 64}};

constexpr auto kMaxInteger = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
constexpr std::size_t kMostDimensions = 64;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

std::vector<std::int64_t> integers(const base::JsonObject& object, const std::string& key,
                                   std::size_t most) {
  std::vector<std::int64_t> numbers;
  for (const nlohmann::json& number : object.array(key, most)) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > kMaxInteger) {
      object.fail(key, "must hold whole numbers from 0 to 2^63 - 1");
    }
    numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

TensorEntry parse_tensor(const std::string& name, const base::JsonObject& object) {
  object.allow_only({"dtype", "shape", "data_offsets"});
  TensorEntry tensor;
  tensor.name = name;
  tensor.dtype = object.string("dtype");
  const auto dtype = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [&](const auto& known) { return known.name == tensor.dtype; });
  if (dtype == kDtypes.end()) {
    object.fail("dtype", "is " + base::quote(tensor.dtype) + ", which the format does not know");
  }
  tensor.shape = integers(object, "shape", kMostDimensions);
  const std::vector<std::int64_t> offsets = integers(object, "data_offsets", 2);
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    object.fail("data_offsets", "must be [begin, end] with begin <= end");
  }
  tensor.begin = static_cast<std::uint64_t>(offsets[0]);
  tensor.end = static_cast<std::uint64_t>(offsets[1]);
  const std::optional<std::uint64_t> bytes = dense_bytes(tensor.shape, dtype->bits);
  if (bytes != tensor.num_bytes()) {
    object.fail("data_offsets", "spans " + std::to_string(tensor.num_bytes()) +
                                    " bytes, but shape and dtype ask for " +
                                    (bytes ? std::to_string(*bytes) : "more than can be"));
  }
  return tensor;
}

// Tensors in the order of their bytes must fill the rest of the file: no holes, no overlaps.
void check_coverage(const Description& description, std::uint64_t file_bytes,
                    const std::string& where) {
  std::uint64_t covered = 0;
  for (const TensorEntry& tensor : description.tensors) {
    if (tensor.begin != covered) {
      throw base::IoError(where + ": tensor " + base::quote(tensor.name) + " begins at byte " +
                          std::to_string(tensor.begin) + " of the data, the one before ends at " +
                          std::to_string(covered) +
                          (tensor.begin > covered ? ": a hole" : ": they overlap") +
                          "; the file is damaged, fetch or write it again");
    }
    covered = tensor.end;
  }
  const std::uint64_t data_bytes = file_bytes - description.data_begin;
  if (covered != data_bytes) {
    throw base::IoError(
        where + ": the tensors cover " + std::to_string(covered) + " bytes, the file has " +
        std::to_string(data_bytes) + " after its header; it is " +
        (covered > data_bytes ? "truncated" : "too long") + ", fetch or write it again");
  }
}

// The header as text, once its length is known to fit.
std::string_view header_text(std::string_view start, std::uint64_t file_bytes,
                             const std::string& where) {
  if (start.size() < kLengthBytes || file_bytes < kLengthBytes) {
    throw base::IoError(where + ": " +
                        std::to_string(std::min<std::uint64_t>(start.size(), file_bytes)) +
                        " bytes are too few for a safetensors file, which begins with 8 bytes of "
                        "header length");
  }
  const std::uint64_t length = little_endian(start);
  if (length > kMostHeaderBytes) {
    throw base::IoError(where + ": a header of " + std::to_string(length) + " bytes; at most " +
                        std::to_string(kMostHeaderBytes) +
                        " are allowed: this is no safetensors file, or a damaged one");
  }
  if (length > file_bytes - kLengthBytes || length > start.size() - kLengthBytes) {
    throw base::IoError(where + ": a header of " + std::to_string(length) +
                        " bytes passes the end of the file (" + std::to_string(file_bytes) +
                        " bytes); it is truncated, fetch or write it again");
  }
  const std::string_view text = start.substr(kLengthBytes, length);
  if (!text.starts_with('{')) {
    throw base::IoError(where + ": the header does not begin with '{': no safetensors file");
  }
  return text;
}

}  // namespace

std::span<const SafetensorsDtype> safetensors_dtypes() {
  return kDtypes;
}

SafetensorsDtype safetensors_dtype(std::string_view name) {
  std::vector<std::string> names;
  for (const SafetensorsDtype& dtype : kDtypes) {
    if (dtype.name == name) {
      return dtype;
    }
    names.emplace_back(dtype.name);
  }
  throw base::ConfigError("unknown safetensors dtype " + base::quote(name) +
                          base::did_you_mean(name, names) + "; allowed: " + base::join(names));
}

std::optional<std::uint64_t> dense_bytes(std::span<const std::int64_t> shape, int bits) {
  std::uint64_t total_bits = static_cast<std::uint64_t>(bits);
  for (const std::int64_t size : shape) {
    if (size < 0) {
      return std::nullopt;
    }
    if (__builtin_mul_overflow(total_bits, static_cast<std::uint64_t>(size), &total_bits)) {
      return std::nullopt;
    }
  }
  if (total_bits % 8 != 0) {
    return std::nullopt;
  }
  return total_bits / 8;
}

const TensorEntry* Description::find(std::string_view name) const {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(),
                   [name](const TensorEntry& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Description parse_safetensors(std::string_view start, std::uint64_t file_bytes,
                              std::string_view where) {
  const std::string name(where);
  const std::string_view text = header_text(start, file_bytes, name);
  const nlohmann::json document =
      base::parse_json(text, name + " (header)", {.bytes = kMostHeaderBytes, .depth = 3});
  const base::JsonObject root(document, name + " (header)");
  Description description;
  description.data_begin = kLengthBytes + text.size();
  for (const std::string& key : root.keys()) {
    const base::JsonObject object = root.object(key);
    if (key != kMetadataKey) {
      description.tensors.push_back(parse_tensor(key, object));
      continue;
    }
    for (const std::string& entry : object.keys()) {
      description.metadata.emplace(entry, object.string(entry));
    }
  }
  std::sort(description.tensors.begin(), description.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  check_coverage(description, file_bytes, name);
  return description;
}

}  // namespace headrace::formats
