#include "headrace/record/manifest.h"

#include <algorithm>
#include <cstddef>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/file.h"
#include "headrace/base/json.h"
#include "headrace/base/sha256.h"
#include "headrace/base/text.h"
#include "headrace/formats/safetensors.h"

namespace headrace::record {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "manifest.json";
constexpr std::size_t kMostBytes = std::size_t{512} << 20U;
constexpr std::size_t kMostDims = 64;
constexpr std::size_t kMostStages = 1U << 16U;

std::string tensor_sha256(const formats::SafetensorsFile& file,
                          const formats::TensorEntry& tensor) {
  constexpr std::uint64_t kPiece = 1U << 20U;
  std::vector<std::byte> buffer(std::min(kPiece, tensor.num_bytes()));
  base::Sha256 hash;
  for (std::uint64_t at = 0; at < tensor.num_bytes(); at += buffer.size()) {
    const auto piece =
        std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), tensor.num_bytes() - at));
    file.read(tensor, at, piece);
    hash.update(piece);
  }
  return hash.hex_digest();
}

// A name with no way out of its folder.
bool plain_name(const std::string& name) {
  const auto bad = [](unsigned char c) { return c == '/' || c == '\\' || c < 0x20 || c == 0x7F; };
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         std::none_of(name.begin(), name.end(), bad);
}

bool hex_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string checksum(const base::JsonObject& object) {
  std::string text = object.string("sha256");
  if (!hex_digest(text)) {
    object.fail("sha256", "must be 64 hexadecimal digits, is " + base::quote(text));
  }
  return text;
}

std::vector<std::int64_t> sizes(const base::JsonObject& object, const std::string& key,
                                std::size_t most) {
  std::vector<std::int64_t> numbers;
  for (const nlohmann::json& item : object.array(key, most)) {
    if (!item.is_number_unsigned()) {
      object.fail(key, "must hold integers, none negative");
    }
    numbers.push_back(item.get<std::int64_t>());
  }
  return numbers;
}

void read_files(const base::JsonObject& object, Manifest& manifest) {
  const base::JsonObject files = object.object("files");
  for (const std::string& name : files.keys()) {
    if (!plain_name(name)) {
      files.fail(name, "is not a plain file name; a shard lies in the manifest's own folder");
    }
    const base::JsonObject file = files.object(name);
    file.allow_only({"bytes", "sha256"});
    manifest.files[name] = {file.integer("bytes", 0), checksum(file)};
  }
}

void read_tensors(const base::JsonObject& object, Manifest& manifest) {
  const base::JsonObject tensors = object.object("tensors");
  for (const std::string& name : tensors.keys()) {
    const base::JsonObject tensor = tensors.object(name);
    tensor.allow_only({"file", "dtype", "shape", "sha256"});
    const std::string file = tensor.string("file");
    if (manifest.files.find(file) == manifest.files.end()) {
      tensor.fail("file", "names " + base::quote(file) + ", which is not under 'files'");
    }
    manifest.tensors[name] = {file, tensor.string("dtype"), sizes(tensor, "shape", kMostDims),
                              checksum(tensor)};
  }
}

[[noreturn]] void broken(const fs::path& path, const std::string& what) {
  throw base::IoError("checkpoint file '" + path.string() + "' " + what +
                      "; the checkpoint is damaged: use another one");
}

void verify_file(const fs::path& path, const ManifestFile& expected) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::symlink) {
    broken(path, "is a link; shards are plain files of the checkpoint's folder");
  }
  if (status.type() != fs::file_type::regular) {
    broken(path, status.type() == fs::file_type::not_found ? "is missing" : "is not a file");
  }
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, error));
  if (!error && bytes != expected.bytes) {
    broken(path, "has " + base::thousands(bytes) + " bytes, the manifest says " +
                     base::thousands(expected.bytes));
  }
  if (base::sha256_file_hex(path) != expected.sha256) {
    broken(path, "has another SHA-256 than the manifest says");
  }
}

void verify_tensors(const fs::path& path, const Manifest& manifest) {
  const std::string shard = path.filename().string();
  const formats::SafetensorsFile file(path);
  std::size_t expected = 0;
  for (const auto& [name, tensor] : manifest.tensors) {
    expected += tensor.file == shard ? 1 : 0;
  }
  if (file.description().tensors.size() != expected) {
    broken(path, "holds " + std::to_string(file.description().tensors.size()) +
                     " tensors, the manifest says " + std::to_string(expected));
  }
  for (const formats::TensorEntry& entry : file.description().tensors) {
    const auto found = manifest.tensors.find(entry.name);
    if (found == manifest.tensors.end() || found->second.file != shard) {
      broken(path, "holds the tensor " + base::quote(entry.name) +
                       ", which the manifest does not list there");
    }
    const ManifestTensor& tensor = found->second;
    if (tensor.dtype != entry.dtype || tensor.shape != entry.shape) {
      broken(path, "has another dtype or shape for " + base::quote(entry.name) +
                       " than the manifest says");
    }
    if (tensor_sha256(file, entry) != tensor.sha256) {
      broken(path, "has other bytes for " + base::quote(entry.name) + " than the manifest says");
    }
  }
}

}  // namespace

void describe_shards(Manifest& manifest, const fs::path& folder,
                     std::span<const std::string> shards) {
  for (const std::string& shard : shards) {
    if (!plain_name(shard)) {
      throw base::ConfigError("a shard's name must be a plain file name, is " + base::quote(shard));
    }
    const fs::path path = folder / shard;
    const formats::SafetensorsFile file(path);
    for (const formats::TensorEntry& entry : file.description().tensors) {
      const ManifestTensor tensor{shard, entry.dtype, entry.shape, tensor_sha256(file, entry)};
      if (!manifest.tensors.emplace(entry.name, tensor).second) {
        throw base::ConfigError("the tensor " + base::quote(entry.name) + " is in two shards, '" +
                                manifest.tensors[entry.name].file + "' and '" + shard +
                                "'; a name stands once in a checkpoint");
      }
    }
    manifest.files[shard] = {static_cast<std::int64_t>(fs::file_size(path)),
                             base::sha256_file_hex(path)};
  }
}

std::string to_json(const Manifest& manifest) {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, file] : manifest.files) {
    files[name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  }
  nlohmann::json tensors = nlohmann::json::object();
  for (const auto& [name, tensor] : manifest.tensors) {
    tensors[name] = {{"file", tensor.file},
                     {"dtype", tensor.dtype},
                     {"shape", tensor.shape},
                     {"sha256", tensor.sha256}};
  }
  const nlohmann::json document = {{"format_version", kManifestFormatVersion},
                                   {"step", manifest.step},
                                   {"seed", manifest.seed},
                                   {"libtorch_version", manifest.libtorch_version},
                                   {"layout", {{"layers_per_stage", manifest.layers_per_stage}}},
                                   {"files", std::move(files)},
                                   {"tensors", std::move(tensors)}};
  return base::json_text(document);
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  base::write_file(folder / kFileName, to_json(manifest));
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kFileName;
  const std::string where = path.string();
  const nlohmann::json document =
      base::parse_json(base::read_file(path, kMostBytes), where, {.bytes = kMostBytes});
  const base::JsonObject object(document, where);
  object.check_format_version(kManifestFormatVersion);
  object.allow_only(
      {"format_version", "step", "seed", "libtorch_version", "layout", "files", "tensors"});
  Manifest manifest;
  manifest.step = object.integer("step", 0);
  manifest.seed = object.integer("seed");
  manifest.libtorch_version = object.string("libtorch_version");
  const base::JsonObject layout = object.object("layout");
  layout.allow_only({"layers_per_stage"});
  manifest.layers_per_stage = sizes(layout, "layers_per_stage", kMostStages);
  read_files(object, manifest);
  read_tensors(object, manifest);
  return manifest;
}

void verify(const fs::path& folder, const Manifest& manifest) {
  for (const auto& [name, file] : manifest.files) {
    verify_file(folder / name, file);
  }
  for (const auto& [name, file] : manifest.files) {
    verify_tensors(folder / name, manifest);
  }
}

}  // namespace headrace::record
