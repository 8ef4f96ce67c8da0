#include "headrace/record/recipe_toml.h"

#include <algorithm>
#include <cctype>
#include <tuple>

#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "headrace/base/text.h"

namespace headrace::record {

namespace {

// A tree is destroyed recursively: without these a file of "a.a.a. ..." could use up the stack.
constexpr std::size_t kMostLineBytes = 4096;
constexpr std::ptrdiff_t kMostDotsInLine = 64;

std::string place(const std::string& where, std::size_t line, std::size_t column) {
  return where + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string place(const std::string& where, const toml::source_position& position) {
  return place(where, position.line, position.column);
}

std::string_view line_of(std::string_view text, std::size_t number) {
  for (std::size_t line = 1; line < number; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      return {};
    }
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

std::string kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

Value list_of(const toml::array& array) {
  std::vector<std::int64_t> numbers;
  for (const toml::node& item : array) {
    if (!item.is_integer()) {
      return Unusable{"a list with " + kind_of(item) + " inside"};
    }
    numbers.push_back(item.as_integer()->get());
  }
  return numbers;
}

Value value_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean:
      return node.as_boolean()->get();
    case toml::node_type::integer:
      return node.as_integer()->get();
    case toml::node_type::floating_point:
      return node.as_floating_point()->get();
    case toml::node_type::string:
      return node.as_string()->get();
    case toml::node_type::array:
      return list_of(*node.as_array());
    default:
      return Unusable{kind_of(node)};
  }
}

std::string shown(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? "true" : "false";
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return std::to_string(*integer);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return base::exact_text(*number);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return base::quote(*text);
  }
  return kind_name(value);
}

struct Placed {
  Assignment assignment;
  toml::source_position position;
};

void take(std::vector<Placed>& all, const std::string& key, const toml::key& name,
          const toml::node& node, const std::string& where) {
  Value value = value_of(node);
  std::string text = shown(value);
  const toml::source_position position = name.source().begin;
  all.push_back({{key, std::move(value), std::move(text), place(where, position),
                  place(where, node.source().begin)},
                 position});
}

TomlDocument flatten(const toml::table& root, const std::string& where) {
  TomlDocument document;
  std::vector<Placed> all;
  for (const auto& [name, node] : root) {
    const std::string outer(name.str());
    const toml::table* section = node.as_table();
    if (section == nullptr) {
      take(all, outer, name, node, where);
      continue;
    }
    document.sections.push_back({outer, place(where, name.source().begin)});
    for (const auto& [inner_name, inner] : *section) {
      take(all, outer + "." + std::string(inner_name.str()), inner_name, inner, where);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.position.line, a.position.column) <
           std::tie(b.position.line, b.position.column);
  });
  for (Placed& placed : all) {
    document.assignments.push_back(std::move(placed.assignment));
  }
  return document;
}

std::optional<SyntaxMistake> refuse_before_parsing(std::string_view text,
                                                   const std::string& where) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return SyntaxMistake{place(where, 1, 1), "the file is UTF-16; save it as UTF-8"};
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const base::TextPosition at = base::position_at(text, zero);
    return SyntaxMistake{place(where, at.line, at.column),
                         "a zero byte: this is not a text file; give a recipe in TOML"};
  }
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (line.size() > kMostLineBytes) {
      return SyntaxMistake{place(where, number, kMostLineBytes + 1),
                           "a line of " + std::to_string(line.size()) + " bytes; at most " +
                               std::to_string(kMostLineBytes) + " are allowed"};
    }
    const bool comment = base::trim(line).starts_with('#');
    if (!comment && std::count(line.begin(), line.end(), '.') > kMostDotsInLine) {
      return SyntaxMistake{place(where, number, 1), "more than " + std::to_string(kMostDotsInLine) +
                                                        " dots in a line; keys are section.key"};
    }
  }
  return std::nullopt;
}

SyntaxMistake explain(const toml::parse_error& error, std::string_view text,
                      const std::string& where) {
  std::string what(error.description());
  const toml::source_position at = error.source().begin;
  std::size_t column = at.column;
  const std::string_view line = line_of(text, at.line);
  if (what.find("could not be interpreted as a value") != std::string::npos ||
      what.find("not representable") != std::string::npos) {
    // The parser stands behind the number: go back to where it starts.
    const auto in_number = [&](std::size_t c) {
      return c >= 1 && c <= line.size() &&
             (std::isalnum(static_cast<unsigned char>(line[c - 1])) != 0 ||
              std::string_view("+-._").find(line[c - 1]) != std::string_view::npos);
    };
    column = std::min(column, line.size() + 1);
    while (in_number(column - 1)) {
      --column;
    }
    what += " (the number is too large or not a number)";
  } else if (what.find("cannot redefine existing") != std::string::npos) {
    const std::size_t first = line.find_first_not_of(" \t");
    column = first == std::string_view::npos ? column : first + 1;
    what += " (it is there twice: keep one)";
  }
  return {place(where, at.line, column), "not TOML: " + what};
}

}  // namespace

std::string kind_name(const Value& value) {
  if (const auto* unusable = std::get_if<Unusable>(&value)) {
    return unusable->what;
  }
  constexpr std::string_view kNames[] = {"true or false", "an integer", "a number with a fraction",
                                         "text", "a list of integers"};
  return std::string(kNames[value.index()]);
}

TomlDocument read_toml(std::string_view text, const std::string& where) {
  TomlDocument document;
  document.mistake = refuse_before_parsing(text, where);
  if (document.mistake) {
    return document;
  }
  try {
    document = flatten(toml::parse(text, std::string_view(where)), where);
  } catch (const toml::parse_error& error) {
    document.mistake = explain(error, text, where);
  }
  return document;
}

std::optional<Value> read_toml_value(std::string_view text) {
  if (text.size() > kMostLineBytes || text.find_first_of("\n\r#{") != std::string_view::npos) {
    return std::nullopt;
  }
  try {
    const toml::table table = toml::parse("value = " + std::string(text));
    const toml::node* node = table.get("value");
    return table.size() == 1 && node != nullptr ? std::optional(value_of(*node)) : std::nullopt;
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

}  // namespace headrace::record
