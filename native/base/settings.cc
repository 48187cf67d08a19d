#include "base/settings.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "base/spelling.h"

namespace spillway {

namespace {

template <typename Number>
std::optional<Number> parse(const std::string& text) {
  Number number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string shown(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

const std::string* Settings::find(const std::string& key) {
  asked_.push_back(key);
  const auto found = given_.find(key);
  return found == given_.end() ? nullptr : &found->second;
}

void Settings::refuse(const std::string& message) {
  if (problem_) problem_ = Status::bad_input(message);
}

void Settings::refuse_value(const std::string& key, const std::string& takes) {
  refuse(prefix_ + key + " is " + given_.at(key) + "; it takes " + takes);
}

std::uint64_t Settings::whole(const std::string& key, std::uint64_t fallback, std::uint64_t low, std::uint64_t high) {
  const std::string* const text = find(key);
  if (text == nullptr) return fallback;
  const auto number = parse<std::uint64_t>(*text);
  if (number && *number >= low && *number <= high) return *number;
  refuse_value(key, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  return fallback;
}

std::uint64_t Settings::size(const std::string& key, std::uint64_t fallback, std::uint64_t low) {
  const std::string* const text = find(key);
  if (text == nullptr) return fallback;
  const auto bytes = parse_size(*text);
  if (bytes && bytes.value() >= low) return bytes.value();
  refuse_value(key, low == 0 ? "a size such as 64MiB" : "a size above 0 such as 64MiB");
  return fallback;
}

double Settings::number(const std::string& key, double fallback, double low, double high) {
  const std::string* const text = find(key);
  if (text == nullptr) return fallback;
  const auto number = parse<double>(*text);
  if (number && *number >= low && *number <= high) return *number;
  refuse_value(key, "a number from " + shown(low) + " to " + shown(high));
  return fallback;
}

bool Settings::flag(const std::string& key, bool fallback) {
  const std::string* const text = find(key);
  if (text == nullptr) return fallback;
  if (*text == "true" || *text == "false") return *text == "true";
  refuse_value(key, "true or false");
  return fallback;
}

std::string Settings::text(const std::string& key, const std::string& fallback, const std::string& takes) {
  const std::string* const text = find(key);
  if (text == nullptr || !text->empty()) return text == nullptr ? fallback : *text;
  refuse_value(key, takes);
  return fallback;
}

std::size_t Settings::choice(const std::string& key, const std::vector<std::string>& words, std::size_t fallback) {
  const std::string* const text = find(key);
  if (text == nullptr) return fallback;
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string message = prefix_ + key + " \"" + *text + "\" is not known; ";
  const std::string near = nearest(*text, words);
  if (!near.empty()) {
    message += "did you mean " + near + "?";
  } else {
    message += "it takes";
    for (const std::string& word : words) message += (&word == &words.front() ? " " : ", ") + word;
  }
  refuse(message);
  return fallback;
}

Status Settings::finish() const {
  if (!problem_) return problem_;
  for (const auto& [key, value] : given_) {
    if (std::find(asked_.begin(), asked_.end(), key) != asked_.end()) continue;
    const std::string near = nearest(key, asked_);
    return Status::bad_input(prefix_ + key + " is not a setting of " + owner_ +
                             (near.empty() ? "" : ", the nearest is " + prefix_ + near));
  }
  return Status::ok();
}

}  // namespace spillway
