// Writes safetensors files.

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/json.h"
#include "headrace/base/text.h"
#include "headrace/formats/safetensors.h"
#include "headrace/formats/safetensors_layout.h"
#include "headrace/formats/utf8.h"

namespace headrace::formats {
namespace {

struct Placed {
  const TensorBytes* tensor;
  int bits;
};

[[noreturn]] void refuse(const std::string& reason) {
  throw base::ConfigError("cannot write safetensors: " + reason);
}

std::string json_string(const std::string& text) {
  return base::json_text(nlohmann::json(text), -1);
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    text += text.size() > 1 ? "," : "";
    text += std::to_string(size);
  }
  return text + "]";
}

void check(const TensorBytes& tensor, int bits) {
  if (tensor.name.empty() || tensor.name == kMetadataKey || !is_utf8(tensor.name)) {
    refuse("tensor name " + base::quote(tensor.name) +
           "; a name must be UTF-8, not empty and not __metadata__");
  }
  const std::optional<std::uint64_t> bytes = dense_bytes(tensor.shape, bits);
  if (bytes != tensor.bytes.size()) {
    refuse("tensor " + base::quote(tensor.name) + " of shape " + shape_text(tensor.shape) +
           " and dtype " + tensor.dtype + " needs " +
           (bytes ? std::to_string(*bytes) : "more than can be") + " bytes, " +
           std::to_string(tensor.bytes.size()) + " were given");
  }
}

std::vector<Placed> placed(std::span<const TensorBytes> tensors) {
  std::vector<Placed> order;
  std::set<std::string_view> names;
  for (const TensorBytes& tensor : tensors) {
    const int bits = safetensors_dtype(tensor.dtype).bits;
    check(tensor, bits);
    if (!names.insert(tensor.name).second) {
      refuse("two tensors have the name " + base::quote(tensor.name));
    }
    order.push_back({&tensor, bits});
  }
  std::sort(order.begin(), order.end(), [](const Placed& a, const Placed& b) {
    return a.bits != b.bits ? a.bits > b.bits : a.tensor->name < b.tensor->name;
  });
  return order;
}

std::string metadata_text(const std::map<std::string, std::string>& metadata) {
  std::string text = std::string("\"") + kMetadataKey + "\":{";
  bool first = true;
  for (const auto& [key, value] : metadata) {
    if (!is_utf8(key) || !is_utf8(value)) {
      refuse("metadata " + base::quote(key) + " is not UTF-8");
    }
    text += first ? "" : ",";
    text += json_string(key) + ":" + json_string(value);
    first = false;
  }
  return text + "}";
}

std::string header_text(std::span<const Placed> order,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += metadata_text(metadata);
  }
  std::uint64_t at = 0;
  for (const Placed& place : order) {
    const TensorBytes& tensor = *place.tensor;
    const std::uint64_t end = at + tensor.bytes.size();
    text += text.size() > 1 ? "," : "";
    text += json_string(tensor.name) + ":{\"dtype\":\"" + tensor.dtype +
            "\",\"shape\":" + shape_text(tensor.shape) + ",\"data_offsets\":[" +
            std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
    if (text.size() + 1 > kMostHeaderBytes) {
      break;
    }
  }
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMostHeaderBytes) {
    refuse("the names of " + std::to_string(order.size()) + " tensors make a header above " +
           std::to_string(kMostHeaderBytes) + " bytes, which no reader takes; write several files");
  }
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::vector<Placed> order = placed(tensors);
  const std::string header = header_text(order, metadata);
  std::string length(kLengthBytes, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(header.size() >> (8 * i) & 0xFFU);
  }
  base::AtomicFile file(path);
  file.write(length);
  file.write(header);
  for (const Placed& place : order) {
    const std::span<const std::byte> bytes = place.tensor->bytes;
    file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  file.commit();
}

}  // namespace headrace::formats
