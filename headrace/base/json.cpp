#include "headrace/base/json.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/text.h"

namespace headrace::base {

using nlohmann::json;

std::string json_text(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace) + (indent < 0 ? "" : "\n");
}

JsonObject::JsonObject(const json& value, std::string where, std::string path)
    : value_(&value), where_(std::move(where)), path_(std::move(path)) {
  if (!value.is_object()) {
    throw IoError(where_ + ": " + (path_.empty() ? "the document" : "key '" + path_ + "'") +
                  " must be an object, found " + value.type_name());
  }
}

std::string JsonObject::path_to(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void JsonObject::fail(const std::string& key, const std::string& problem) const {
  throw IoError(where_ + ": key " + quote(path_to(key)) + " " + problem);
}

bool JsonObject::has(const std::string& key) const {
  return value_->contains(key);
}

const json& JsonObject::at(const std::string& key) const {
  const auto found = value_->find(key);
  if (found == value_->end()) {
    fail(key, "is missing" + did_you_mean(key, keys()));
  }
  return *found;
}

std::string JsonObject::string(const std::string& key) const {
  const json& value = at(key);
  if (!value.is_string()) {
    fail(key, std::string("must be a string, found ") + value.type_name());
  }
  return value.get<std::string>();
}

bool JsonObject::boolean(const std::string& key) const {
  const json& value = at(key);
  if (!value.is_boolean()) {
    fail(key, std::string("must be true or false, found ") + value.type_name());
  }
  return value.get<bool>();
}

std::int64_t JsonObject::integer(const std::string& key, std::int64_t min, std::int64_t max) const {
  const json& value = at(key);
  if (!value.is_number_integer()) {
    fail(key, "must be an integer, found " + quote(value.dump(-1, ' ', true)));
  }
  // An unsigned number beyond the signed range would come out negative.
  const bool fits = !value.is_number_unsigned() ||
                    value.get<std::uint64_t>() <=
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::int64_t number = fits ? value.get<std::int64_t>() : 0;
  if (!fits || number < min || number > max) {
    fail(key, "must be in [" + std::to_string(min) + ", " + std::to_string(max) + "], found " +
                  value.dump());
  }
  return number;
}

double JsonObject::number(const std::string& key, double min, double max) const {
  const json& value = at(key);
  if (!value.is_number()) {
    fail(key, std::string("must be a number, found ") + value.type_name());
  }
  const double number = value.get<double>();
  if (!std::isfinite(number) || number < min || number > max) {
    fail(key, "must be in [" + exact_text(min) + ", " + exact_text(max) + "], found " +
                  exact_text(number));
  }
  return number;
}

JsonObject JsonObject::object(const std::string& key) const {
  return JsonObject(at(key), where_, path_to(key));
}

const json& JsonObject::array(const std::string& key, std::size_t most) const {
  const json& value = at(key);
  if (!value.is_array()) {
    fail(key, std::string("must be an array, found ") + value.type_name());
  }
  if (value.size() > most) {
    fail(key, "must have at most " + std::to_string(most) + " elements, found " +
                  std::to_string(value.size()));
  }
  return value;
}

std::vector<JsonObject> JsonObject::objects(const std::string& key, std::size_t most) const {
  std::vector<JsonObject> found;
  const json& list = array(key, most);
  for (std::size_t i = 0; i < list.size(); ++i) {
    found.emplace_back(list[i], where_, path_to(key) + "[" + std::to_string(i) + "]");
  }
  return found;
}

std::vector<std::string> JsonObject::keys() const {
  std::vector<std::string> names;
  for (const auto& item : value_->items()) {
    names.push_back(item.key());
  }
  return names;
}

void JsonObject::check_format_version(std::int64_t known) const {
  const std::int64_t version = integer("format_version");
  if (version != known) {
    fail("format_version", "is " + std::to_string(version) + ", this headrace reads version " +
                               std::to_string(known) + "; write the file anew with it");
  }
}

void JsonObject::allow_only(std::initializer_list<std::string_view> known) const {
  const std::vector<std::string> names(known.begin(), known.end());
  for (const std::string& key : keys()) {
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      fail(key, "is unknown" + did_you_mean(key, names) + "; known here: " + join(names));
    }
  }
}

}  // namespace headrace::base
