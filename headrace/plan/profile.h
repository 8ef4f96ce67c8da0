// What was measured of each layer: plain data that `runtime/measure` fills, the partition reads and
// `profile.json` holds (docs/formats/profile.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headrace::plan {

/// One layer on one microbatch.
struct LayerProfile {
  std::string name;
  double forward_seconds = 0;
  double input_gradient_seconds = 0;
  double weight_gradient_seconds = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t output_bytes = 0;      // what it hands to the next layer
  std::int64_t activation_bytes = 0;  // what its forward leaves live for its backward

  double seconds() const {
    return forward_seconds + input_gradient_seconds + weight_gradient_seconds;
  }
  bool operator==(const LayerProfile&) const = default;
};

struct Profile {
  std::int64_t microbatch_rows = 0;  // of the microbatch that was measured
  std::vector<LayerProfile> layers;

  bool operator==(const Profile&) const = default;
};

/// profile.json, format_version 1; every key carries its unit.
std::string to_json(const Profile& profile);

/// @throws base::IoError naming `where` and the key that is missing, of the wrong type or not
/// finite.
Profile parse_profile(const std::string& json, const std::string& where);

}  // namespace headrace::plan
