#include "headrace/plan/profile.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "headrace/base/json.h"

namespace headrace::plan {

namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr std::size_t kMostLayers = 100'000;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 53U;  // what every JSON reader keeps exact
constexpr double kMostSeconds = 1e9;

LayerProfile parse_layer(const base::JsonObject& object) {
  object.allow_only({"name", "forward_seconds", "input_gradient_seconds", "weight_gradient_seconds",
                     "parameter_bytes", "output_bytes", "activation_bytes"});
  const auto seconds = [&](const char* key) { return object.number(key, 0, kMostSeconds); };
  const auto bytes = [&](const char* key) { return object.integer(key, 0, kMostBytes); };
  return {.name = object.string("name"),
          .forward_seconds = seconds("forward_seconds"),
          .input_gradient_seconds = seconds("input_gradient_seconds"),
          .weight_gradient_seconds = seconds("weight_gradient_seconds"),
          .parameter_bytes = bytes("parameter_bytes"),
          .output_bytes = bytes("output_bytes"),
          .activation_bytes = bytes("activation_bytes")};
}

}  // namespace

std::string to_json(const Profile& profile) {
  // Ordered, so that the keys stand as in the format's page.
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerProfile& layer : profile.layers) {
    layers.push_back({{"name", layer.name},
                      {"forward_seconds", layer.forward_seconds},
                      {"input_gradient_seconds", layer.input_gradient_seconds},
                      {"weight_gradient_seconds", layer.weight_gradient_seconds},
                      {"parameter_bytes", layer.parameter_bytes},
                      {"output_bytes", layer.output_bytes},
                      {"activation_bytes", layer.activation_bytes}});
  }
  const nlohmann::ordered_json document{{"format_version", kFormatVersion},
                                        {"microbatch_rows", profile.microbatch_rows},
                                        {"layers", std::move(layers)}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Profile parse_profile(const std::string& json, const std::string& where) {
  const nlohmann::json document = base::parse_json(json, where);
  const base::JsonObject object(document, where);
  object.check_format_version(kFormatVersion);
  object.allow_only({"format_version", "microbatch_rows", "layers"});
  Profile profile;
  profile.microbatch_rows =
      object.integer("microbatch_rows", 1, std::numeric_limits<std::int32_t>::max());
  for (const base::JsonObject& layer : object.objects("layers", kMostLayers)) {
    profile.layers.push_back(parse_layer(layer));
  }
  return profile;
}

}  // namespace headrace::plan
