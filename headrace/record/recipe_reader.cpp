#include "headrace/record/recipe_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include "headrace/base/text.h"
#include "headrace/record/recipe_schema.h"

namespace headrace::record {

namespace {

constexpr std::size_t kMostText = 4000;

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Key& key : recipe_keys()) {
    if (names.empty() || names.back() != key.section()) {
      names.emplace_back(key.section());
    }
  }
  return names;
}

bool is_section(std::string_view name) {
  const auto names = section_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A key in the wrong section is likelier than a misspelt one.
std::string suggestion(std::string_view name) {
  const std::string_view leaf = name.substr(name.rfind('.') + 1);
  std::vector<std::string> names;
  for (const Key& key : recipe_keys()) {
    if (key.leaf() == leaf) {
      return "; did you mean '" + key.name + "'?";
    }
    names.push_back(key.name);
  }
  std::string meant = base::did_you_mean(name, names);
  if (meant.empty() && leaf == name) {
    std::vector<std::string> leaves;
    for (const Key& key : recipe_keys()) {
      leaves.emplace_back(key.leaf());
    }
    if (const auto nearest = base::nearest_name(leaf, leaves)) {
      const auto at = std::find(leaves.begin(), leaves.end(), *nearest) - leaves.begin();
      meant = "; did you mean '" + names[static_cast<std::size_t>(at)] + "'?";
    }
  }
  return meant;
}

// Puts values into a recipe, one source after the other, and notes every mistake.
class Reader {
 public:
  explicit Reader(const Reading& reading)
      : recipe_(reading.recipe), origins_(reading.origins), mistakes_(reading.mistakes) {}

  void read(const TomlDocument& document, const std::string& where) {
    if (document.mistake) {
      mistakes_.add(document.mistake->place, document.mistake->what);
      return;
    }
    if (document.sections.empty() && document.assignments.empty()) {
      mistakes_.add(where + ":1:1",
                    "the recipe is empty: give at least one section, e.g. [training]");
    }
    for (const SectionHeader& section : document.sections) {
      if (!is_section(section.name)) {
        mistakes_.add(section.place, "unknown section [" + shown_name(section.name) + "]" +
                                         base::did_you_mean(section.name, section_names()));
      }
    }
    for (const Assignment& assignment : document.assignments) {
      read(assignment);
    }
  }

  void read(const Setting& setting) {
    const Key* key = known(setting.key, setting.where);
    if (key == nullptr) {
      return;
    }
    const bool text = std::holds_alternative<std::string& (*)(Recipe&)>(key->field);
    const bool list = std::holds_alternative<std::vector<std::int64_t>& (*)(Recipe&)>(key->field);
    std::optional<Value> value;
    if (text) {
      value = setting.value;
    } else {
      const std::string trimmed(base::trim(setting.value));
      value = read_toml_value(list && !trimmed.starts_with('[') ? "[" + trimmed + "]" : trimmed);
    }
    const std::string shown = base::quote(setting.value);
    if (!value) {
      wrong(*key, setting.where, shown, "must be " + type_name(*key) + range(*key));
      return;
    }
    take(*key, *value, shown, setting.where);
  }

 private:
  static std::string shown_name(std::string_view name) {
    const std::string shown = base::quote(name);
    const bool plain = shown.size() == name.size() + 2;
    return plain ? std::string(name) : shown;
  }

  void read(const Assignment& assignment) {
    const std::size_t dot = assignment.key.find('.');
    if (dot == std::string::npos && is_section(assignment.key)) {
      mistakes_.add(assignment.key_place, assignment.key + " is a section: write [" +
                                              assignment.key + "] and its keys below it");
      return;
    }
    if (dot != std::string::npos && !is_section(assignment.key.substr(0, dot))) {
      return;  // the section was told already
    }
    if (const Key* key = known(assignment.key, assignment.key_place)) {
      take(*key, assignment.value, assignment.shown, assignment.value_place);
    }
  }

  const Key* known(const std::string& name, const std::string& place) {
    const Key* key = find_key(name);
    if (key == nullptr) {
      mistakes_.add(
          place, "unknown key " + shown_name(name) + (mistakes_.enough() ? "" : suggestion(name)));
    }
    return key;
  }

  void wrong(const Key& key, const std::string& place, const std::string& shown,
             const std::string& rule) {
    origins_.mark_wrong(key.name);
    mistakes_.add(place, key.name + " = " + shown + ": " + rule);
  }

  static std::string range(const Key& key) {
    std::string text;
    if (std::isfinite(key.bounds.low) || std::isfinite(key.bounds.high)) {
      text.append(" ").append(key.bounds.text());
    }
    if (!key.unit.empty()) {
      text.append(", in ").append(key.unit);
    }
    return text;
  }

  void take(const Key& key, const Value& value, const std::string& shown,
            const std::string& place) {
    origins_.set(key.name, place);
    const auto refuse = [&](const std::string& rule) { wrong(key, place, shown, rule); };
    std::visit([&](auto field) { put(key, field(recipe_), value, refuse); }, key.field);
  }

  template <typename Target, typename Refuse>
  void put(const Key& key, Target& target, const Value& value, const Refuse& refuse) {
    const auto* same = std::get_if<Target>(&value);
    if constexpr (std::is_same_v<Target, double>) {
      const auto* integer = std::get_if<std::int64_t>(&value);
      if (same != nullptr || integer != nullptr) {
        put_number(key, target, same != nullptr ? *same : static_cast<double>(*integer), refuse);
        return;
      }
    }
    if constexpr (std::is_same_v<Target, std::int64_t>) {
      const auto* fraction = std::get_if<double>(&value);
      if (fraction != nullptr) {
        refuse("must be an integer" + range(key) + ", written without a point or exponent");
        return;
      }
    }
    if (same == nullptr) {
      refuse("is " + kind_name(value) + ", must be " + type_name(key) + range(key));
    } else if constexpr (std::is_same_v<Target, std::string>) {
      put_text(key, target, *same, refuse);
    } else if constexpr (std::is_same_v<Target, std::int64_t>) {
      put_number(key, target, *same, refuse);
    } else if constexpr (std::is_same_v<Target, std::vector<std::int64_t>>) {
      const bool fits = std::all_of(same->begin(), same->end(), [&](std::int64_t number) {
        return key.bounds.admits(static_cast<double>(number));
      });
      fits ? void(target = *same) : refuse("each number must be" + range(key));
    } else {
      target = *same;
    }
  }

  template <typename Number, typename Refuse>
  void put_number(const Key& key, Number& target, Number number, const Refuse& refuse) {
    const auto wide = static_cast<double>(number);
    if (!std::isfinite(wide)) {
      refuse("must be a finite number" + range(key));
    } else if (!key.bounds.admits(wide)) {
      refuse("must be" + range(key));
    } else {
      target = number;
    }
  }

  template <typename Refuse>
  void put_text(const Key& key, std::string& target, const std::string& text,
                const Refuse& refuse) {
    const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
    if (key.allowed.empty()) {
      const bool plain = std::none_of(text.begin(), text.end(), control);
      plain&& text.size() <= kMostText
          ? void(target = text)
          : refuse("must be one line of at most " + std::to_string(kMostText) + " bytes");
      return;
    }
    const std::string wanted = base::lower_case(text);
    if (const auto alias = key.aliases.find(wanted); alias != key.aliases.end()) {
      target = alias->second;
      return;
    }
    const auto same = [&](const std::string& name) { return base::lower_case(name) == wanted; };
    const auto found = std::find_if(key.allowed.begin(), key.allowed.end(), same);
    if (found == key.allowed.end()) {
      refuse("must be one of " + base::join(key.allowed) + base::did_you_mean(text, key.allowed));
    } else {
      target = *found;
    }
  }

  Recipe& recipe_;
  Origins& origins_;
  Mistakes& mistakes_;
};

}  // namespace

void read_document(const TomlDocument& document, const std::string& where, const Reading& reading) {
  Reader(reading).read(document, where);
}

void read_setting(const Setting& setting, const Reading& reading) {
  Reader(reading).read(setting);
}

}  // namespace headrace::record
