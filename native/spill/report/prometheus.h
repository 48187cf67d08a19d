// Metrics as text that Prometheus reads. Format: "Exposition formats", version 0.0.4, and promtool's rules: counters
// end in _total, units are seconds and bytes, every metric has a help text and a type.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "spillway/statistics.h"

namespace spillway::spill {

class PrometheusText {
 public:
  enum class Kind : std::uint8_t { counter, gauge };
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // Begins a metric. A counter's name is given without _total. REQUIRES: a name once, and samples behind it.
  void metric(Kind kind, std::string_view name, std::string_view help);
  // A sample of the metric that was begun last. REQUIRES: labels that no other sample of it has.
  void sample(const Labels& labels, std::uint64_t value);
  void sample_in_seconds(const Labels& labels, std::uint64_t value_us);

  const std::string& text() const { return text_; }

 private:
  void append(const Labels& labels, std::string_view value);

  std::string name_;  // of the metric that was begun last, whole
  std::string text_;
};

// All statistics of the table, those by cause as one metric with a label.
void add_statistics(const SpillStatistics& statistics, PrometheusText* text);

}  // namespace spillway::spill
