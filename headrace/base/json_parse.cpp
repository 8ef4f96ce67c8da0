// Builds the document from the parser's events, so that depth and repeated keys are seen.
#include <nlohmann/json.hpp>

#include "headrace/base/error.h"
#include "headrace/base/json.h"
#include "headrace/base/text.h"

namespace headrace::base {

namespace {

using nlohmann::json;

class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(std::string_view text, const std::string& where, const JsonLimits& limits)
      : text_(text), where_(where), limits_(limits) {}

  json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back()->contains(name)) {
      throw IoError(where_ + ": the key " + quote(name) +
                    " stands twice in one object; keep one of them");
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    // The position counts the last byte read, from 1. What the text of the exception says before
    // the reason is its own id and the position once more.
    const auto [line, column] = position_at(text_, position > 0 ? position - 1 : 0);
    std::string reason = e.what();
    for (const std::string_view before : {std::string_view("] "), std::string_view(": ")}) {
      const std::size_t found = reason.find(before);
      if (found != std::string::npos && found < 80) {
        reason.erase(0, found + before.size());
      }
    }
    throw IoError(where_ + ":" + std::to_string(line) + ":" + std::to_string(column) +
                  ": not JSON: " + reason);
  }

 private:
  template <typename Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }

  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  bool open(json empty) {
    if (open_.size() == limits_.depth) {
      throw IoError(where_ + ": more than " + std::to_string(limits_.depth) +
                    " arrays and objects inside each other; no file of this kind has as many");
    }
    // A parent's array does not grow while its last element is open: the pointer stays good.
    open_.push_back(place(std::move(empty)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  const JsonLimits& limits_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where,
                          const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    throw IoError(where + ": " + thousands(static_cast<std::int64_t>(text.size())) +
                  " bytes of JSON; a file of this kind has at most " +
                  thousands(static_cast<std::int64_t>(limits.bytes)));
  }
  Builder builder(text, where, limits);
  json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace headrace::base
