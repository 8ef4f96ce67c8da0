#include "headrace/train/checkpoint.h"

#include <array>
#include <cstddef>
#include <system_error>

#include <ATen/ATen.h>
#include <unistd.h>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/formats/safetensors.h"

namespace headrace::train {
namespace {

/// The format's name of a dtype.
std::string dtype_name(const std::string& tensor, at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kDouble:
      return "F64";
    case at::kHalf:
      return "F16";
    case at::kBFloat16:
      return "BF16";
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kShort:
      return "I16";
    case at::kChar:
      return "I8";
    case at::kByte:
      return "U8";
    case at::kBool:
      return "BOOL";
    default:
      throw base::ConfigError(
          "tensor '" + tensor + "' has dtype " + std::string(at::toString(type)) +
          ", which a checkpoint cannot hold; keep it in fp32, fp64, fp16, bf16, "
          "bool or an integer type");
  }
}

/// A folder that is removed unless it was renamed to its real name.
class PendingFolder {
 public:
  explicit PendingFolder(std::filesystem::path target) : target_(std::move(target)) {
    std::string name(1, '.');
    name += target_.filename().string();
    name += '.';
    name += std::to_string(getpid());
    pending_ = target_.parent_path() / name;
    if (std::filesystem::exists(target_)) {
      throw base::ConfigError(
          "checkpoint " + target_.string() +
          " exists already and is never written over; choose another run folder");
    }
    std::error_code error;
    std::filesystem::create_directories(pending_, error);
    if (error) {
      throw base::IoError("cannot make " + pending_.string() + ": " + error.message());
    }
  }
  ~PendingFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(pending_, ignored);  // nothing is there after the rename
  }
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  const std::filesystem::path& path() const { return pending_; }

  void publish() {
    base::sync_folder(pending_);
    std::error_code error;
    std::filesystem::rename(pending_, target_, error);
    if (error) {
      throw base::IoError("cannot rename " + pending_.string() + " to " + target_.string() + ": " +
                          error.message());
    }
    base::sync_folder(target_.parent_path());
  }

 private:
  std::filesystem::path target_;
  std::filesystem::path pending_;
};

}  // namespace

void save_checkpoint(const std::filesystem::path& target, const NamedTensors& tensors,
                     record::Manifest manifest) {
  std::vector<at::Tensor> contiguous;  // keeps the bytes alive while they are lent
  std::vector<formats::TensorBytes> entries;
  for (const auto& [name, tensor] : tensors) {
    contiguous.push_back(tensor.detach().cpu().contiguous());
    const at::Tensor& value = contiguous.back();
    entries.push_back({name,
                       dtype_name(name, value.scalar_type()),
                       value.sizes().vec(),
                       {static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()}});
  }
  PendingFolder folder(target);
  const std::array<std::string, 1> shards{"model-00001-of-00001.safetensors"};
  formats::write_safetensors(folder.path() / shards[0], entries);
  record::describe_shards(manifest, folder.path(), shards);
  record::write_manifest(folder.path(), manifest);
  folder.publish();
}

}  // namespace headrace::train
