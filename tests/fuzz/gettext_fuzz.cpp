// Any bytes at all: the tolerant reader never throws and never says more than the file holds, and
// the strict one takes a file exactly when the tolerant one has no warning.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/formats/gettext.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const headrace::formats::Catalogue read = headrace::formats::read_mo_tolerant(bytes, "fuzz");
  std::size_t texts = read.header.size();
  for (const headrace::formats::Message& message : read.messages) {
    texts += message.text.size();
  }
  if (texts > 2 * size) {
    std::abort();
  }
  bool refused = false;
  try {
    headrace::formats::read_mo(bytes, "fuzz");
  } catch (const headrace::base::IoError&) {
    refused = true;
  }
  if (refused != read.warning.has_value()) {
    std::abort();
  }
  return 0;
}
