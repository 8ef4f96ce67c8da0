#include "headrace/train/libtorch.h"

#include <ATen/Version.h>
#include <torch/version.h>

#include "headrace/base/error.h"

namespace headrace::train {
namespace {

/// The leading "major.minor.patch" of a version.
std::string plain(const std::string& version) {
  return version.substr(0, version.find_first_not_of("0123456789."));
}

}  // namespace

std::string libtorch_compiled() {
  return plain(TORCH_VERSION);
}

std::string libtorch_running() {
  const std::string config = at::show_config();
  const std::string key = "TORCH_VERSION=";
  const auto place = config.find(key);
  return place == std::string::npos ? "" : plain(config.substr(place + key.size()));
}

void check_libtorch() {
  const std::string running = libtorch_running();
  if (running.empty() || running == libtorch_compiled()) return;
  throw base::ConfigError("this program was compiled against LibTorch " + libtorch_compiled() +
                          " but runs with " + running +
                          "; build it again (tools/build) or put the right library in its place");
}

}  // namespace headrace::train
