#include "tool/protocol/fields.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/spelling.h"

namespace spillway::tool {
namespace {

const Json kNull;

std::string shown(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object() && !object_.is_null()) {
    problem_ =
        Status::bad_input((path_.empty() ? "the request" : path_) + " is " + object_.dump() + "; it takes an object");
  }
}

const Json* Fields::find(const std::string& key) {
  asked_.push_back(key);
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

void Fields::refuse(const std::string& key, const std::string& takes) {
  if (!problem_.is_ok()) return;
  const auto found = object_.is_object() ? object_.find(key) : object_.end();
  const std::string is = found == object_.end() ? " is missing" : " is " + found->dump();
  problem_ = Status::bad_input(name_of_key(key) + is + "; it takes " + takes);
}

std::string Fields::text(const std::string& key, const std::string& fallback) {
  const Json* const value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  refuse(key, "a text");
  return fallback;
}

std::optional<double> Fields::optional_number(const std::string& key, double low, double high) {
  const Json* const value = find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_number()) {
    const auto number = value->get<double>();
    if (number >= low && number <= high) return number;
  }
  refuse(key, "a number from " + shown(low) + " to " + shown(high));
  return std::nullopt;
}

double Fields::number(const std::string& key, double fallback, double low, double high) {
  return optional_number(key, low, high).value_or(fallback);
}

std::optional<std::uint64_t> Fields::optional_whole(const std::string& key, std::uint64_t low, std::uint64_t high) {
  const Json* const value = find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const bool negative = value->is_number_integer() && !value->is_number_unsigned() && value->get<std::int64_t>() < 0;
  if (value->is_number_integer() && !negative) {
    const auto number = value->get<std::uint64_t>();
    if (number >= low && number <= high) return number;
  }
  refuse(key, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return std::nullopt;
}

std::uint64_t Fields::whole(const std::string& key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high) {
  return optional_whole(key, low, high).value_or(fallback);
}

bool Fields::flag(const std::string& key, bool fallback) {
  const Json* const value = find(key);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  refuse(key, "true or false");
  return fallback;
}

std::vector<std::string> Fields::texts(const std::string& key) {
  const Json* const value = find(key);
  std::vector<std::string> result;
  if (value == nullptr) return result;
  const bool all_text =
      value->is_array() && std::all_of(value->begin(), value->end(), [](const Json& one) { return one.is_string(); });
  if (!all_text) {
    refuse(key, "a list of texts");
    return result;
  }
  for (const Json& one : *value) result.push_back(one.get<std::string>());
  return result;
}

const Json& Fields::inner(const std::string& key) {
  const Json* const value = find(key);
  return value == nullptr ? kNull : *value;
}

Status Fields::finish() const {
  if (!problem_.is_ok() || !object_.is_object()) return problem_;
  for (const auto& [key, value] : object_.items()) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    const std::string near = nearest(key, asked_);
    return Status::bad_input("unknown key " + name_of_key(key) +
                             (near.empty() ? "" : "; did you mean " + name_of_key(near) + "?"));
  }
  return {};
}

std::size_t choice(Fields& fields, const std::string& path, const std::string& key,
                   const std::vector<std::string>& words, std::size_t fallback, Status& problem) {
  const std::string word = fields.text(key, words[fallback]);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (word == words[i]) return i;
  }
  std::string message = path + "." + key + " \"" + word + "\" is not known; ";
  const std::string near = nearest(word, words);
  if (!near.empty()) {
    message += "did you mean " + near + "?";
  } else {
    message += "it takes";
    for (const std::string& known : words) message += (&known == &words.front() ? " " : ", ") + known;
  }
  if (problem) problem = Status::bad_input(message);
  return fallback;
}

}  // namespace spillway::tool
