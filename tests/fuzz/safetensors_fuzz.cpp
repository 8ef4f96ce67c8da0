// Any bytes at all are described or refused with an IoError; what is described lies in the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/formats/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto description = headrace::formats::parse_safetensors(bytes, size, "fuzz");
    std::uint64_t end = 0;
    for (const headrace::formats::TensorEntry& tensor : description.tensors) {
      if (tensor.begin != end) {
        std::abort();
      }
      end = tensor.end;
    }
    if (description.data_begin + end != size) {
      std::abort();
    }
  } catch (const headrace::base::IoError&) {
  }
  return 0;
}
