#include "spill/report/prometheus.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

namespace spillway::spill {
namespace {

constexpr std::string_view kMetricPrefix = "spillway_";
constexpr std::string_view kTimeSuffix = "_us";

struct Statistic {
  PrometheusText::Kind kind;
  std::string_view name;
  std::string_view text;
};
constexpr auto kStatistics = std::to_array<Statistic>({
#define SPILLWAY_COUNTER(name, text) {PrometheusText::Kind::counter, #name, text},
#define SPILLWAY_GAUGE(name, text) {PrometheusText::Kind::gauge, #name, text},
    SPILLWAY_STATISTICS(SPILLWAY_COUNTER, SPILLWAY_GAUGE, SPILLWAY_GAUGE)
#undef SPILLWAY_COUNTER
#undef SPILLWAY_GAUGE
});

struct Part {
  std::string_view name;
  std::string_view whole;
  std::string_view label;
  std::string_view value;
};
constexpr auto kParts = std::to_array<Part>({
#define SPILLWAY_PART(name, whole, label, value) {#name, #whole, #label, #value},
    SPILLWAY_STATISTICS_BY_CAUSE(SPILLWAY_PART)
#undef SPILLWAY_PART
});

// The length of the UTF-8 character at the start of `text`; 0: there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  }
  if (length < 3) return length;
  const unsigned char second = byte(1);
  const bool is_overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_no_character = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return is_overlong || is_no_character ? 0 : length;
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD, the replacement character

void append_in_hex(char byte, std::string* text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  *text += kReplacement;
  *text += kDigits[value >> 4U];
  *text += kDigits[value & 0xfU];
}

// A label's value may be any UTF-8 text. RocksDB accepts names of column families that are none: each byte that is not
// UTF-8 becomes U+FFFD and its two hexadecimal digits, and so do the bytes of U+FFFD itself, so that two names never
// become one.
std::string escaped(std::string_view value, bool is_label) {
  std::string result;
  while (!value.empty()) {
    const std::size_t length = character_length(value);
    const std::string_view character = value.substr(0, std::max<std::size_t>(length, 1));
    value.remove_prefix(character.size());
    if (length == 0 || character == kReplacement) {
      for (const char byte : character) append_in_hex(byte, &result);
    } else if (character == "\n") {
      result += "\\n";
    } else if (character == "\\" || (is_label && character == "\"")) {
      result += '\\';
      result += character;
    } else {
      result += character;
    }
  }
  return result;
}

}  // namespace

void PrometheusText::metric(Kind kind, std::string_view name, std::string_view help) {
  const bool is_counter = kind == PrometheusText::Kind::counter;
  name_ = std::string(kMetricPrefix) + std::string(name) + (is_counter ? "_total" : "");
  text_ += "# HELP " + name_ + " " + escaped(help, /*is_label=*/false) + "\n";
  text_ += "# TYPE " + name_ + (is_counter ? " counter\n" : " gauge\n");
}

void PrometheusText::append(const Labels& labels, std::string_view value) {
  text_ += name_;
  char separator = '{';
  for (const auto& [label, text] : labels) {
    text_ += separator;
    text_ += label;
    text_ += "=\"" + escaped(text, /*is_label=*/true) + "\"";
    separator = ',';
  }
  if (labels.size() > 0) text_ += '}';
  text_ += ' ';
  text_ += value;
  text_ += '\n';
}

void PrometheusText::sample(const Labels& labels, std::uint64_t value) { append(labels, std::to_string(value)); }

void PrometheusText::sample_in_seconds(const Labels& labels, std::uint64_t value_us) {
  constexpr std::uint64_t kPerSecond = 1'000'000;
  std::array<char, 32> digits{};
  const int length =
      std::snprintf(digits.data(), digits.size(), "%llu.%06llu", static_cast<unsigned long long>(value_us / kPerSecond),
                    static_cast<unsigned long long>(value_us % kPerSecond));
  append(labels, {digits.data(), static_cast<std::size_t>(length)});
}

void add_statistics(const SpillStatistics& statistics, PrometheusText* text) {
  std::map<std::string_view, std::uint64_t> values;
  for_each_statistic(statistics, [&](std::string_view name, std::uint64_t value) { values[name] = value; });
  for (const Statistic& one : kStatistics) {
    if (std::ranges::find(kParts, one.name, &Part::name) != kParts.end()) continue;
    const bool is_time = one.name.ends_with(kTimeSuffix);
    std::string name(one.name.substr(0, one.name.size() - (is_time ? kTimeSuffix.size() : 0)));
    if (is_time) name += "_seconds";
    text->metric(one.kind, name, one.text);
    const auto sample = [&](const PrometheusText::Labels& labels, std::uint64_t value) {
      is_time ? text->sample_in_seconds(labels, value) : text->sample(labels, value);
    };
    bool has_parts = false;
    for (const Part& part : kParts) {
      if (part.whole != one.name) continue;
      has_parts = true;
      sample({{part.label, part.value}}, values.at(part.name));
    }
    if (!has_parts) sample({}, values.at(one.name));
  }
}

}  // namespace spillway::spill
