#include "pool/trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

namespace spillway::pool {
namespace {

class Synthetic final : public Trace {
 public:
  Synthetic(const SyntheticSpec& spec, std::uint64_t seed)
      : spec_(spec),
        zipf_(spec.pages, spec.theta),
        scatter_(spec.pages, ssd::mix(seed)),
        places_(ssd::mix(seed + 1)),
        directions_(ssd::mix(seed + 2)) {}

  std::optional<Reference> next() override { return Reference{page(), directions_.uniform() >= spec_.read_fraction}; }

 private:
  Page page() {
    switch (spec_.pattern) {
      case Pattern::uniform:
        return places_.below(spec_.pages);
      case Pattern::zipfian:
        return scatter_(zipf_(places_) - 1);
      case Pattern::sequential:
        break;
    }
    return std::exchange(cursor_, cursor_ + 1 == spec_.pages ? 0 : cursor_ + 1);
  }

  const SyntheticSpec spec_;
  const Zipf zipf_;
  const ssd::Permutation scatter_;
  ssd::Random places_;
  ssd::Random directions_;
  Page cursor_ = 0;
};

class Recorded final : public Trace {
 public:
  explicit Recorded(std::vector<Reference> references) : references_(std::move(references)) {}
  std::optional<Reference> next() override {
    if (at_ == references_.size()) return std::nullopt;
    return references_[at_++];
  }

 private:
  const std::vector<Reference> references_;
  std::size_t at_ = 0;
};

constexpr std::string_view kBlank = " \t\r";

std::string_view next_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(kBlank), line.size());
  line.remove_prefix(begin);
  const std::string_view word = line.substr(0, line.find_first_of(kBlank));
  line.remove_prefix(word.size());
  return word;
}

// None if the line is not a reference.
std::optional<Reference> reference_of(std::string_view line) {
  const std::string_view kind = next_word(line);
  const std::string_view number = next_word(line);
  if ((kind != "r" && kind != "w") || number.empty() || !next_word(line).empty()) return std::nullopt;
  Reference reference{.writes = kind == "w"};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), reference.page);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return reference;
}

}  // namespace

std::unique_ptr<Trace> make_synthetic(const SyntheticSpec& spec, std::uint64_t seed) {
  return std::make_unique<Synthetic>(spec, seed);
}

std::unique_ptr<Trace> make_recorded(std::vector<Reference> references) {
  return std::make_unique<Recorded>(std::move(references));
}

Result<std::vector<Reference>> parse_trace(const std::string& text, const std::string& name, std::uint64_t pages) {
  std::vector<Reference> references;
  std::istringstream lines(text);
  std::uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string where = name + " line " + std::to_string(number) + ": ";
    std::string_view said = line;
    said = said.substr(0, said.find('#'));
    if (said.find_first_not_of(kBlank) == std::string_view::npos) continue;
    const auto reference = reference_of(said);
    if (!reference) return Status::bad_input(where + "not a reference; a line is r PAGE or w PAGE");
    if (reference->page >= pages) {
      return Status::bad_input(where + "page " + std::to_string(reference->page) + " is not below " +
                               std::to_string(pages) + ", the number of pages; take a larger target or smaller pages");
    }
    references.push_back(*reference);
  }
  if (references.empty()) return Status::bad_input(name + ": holds no reference; a line is r PAGE or w PAGE");
  return references;
}

Result<std::vector<Reference>> read_trace(const std::string& path, std::uint64_t pages) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::bad_input("workload.trace: " + path + " cannot be read; name a file of r PAGE and w PAGE");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return Status::io_error("workload.trace: " + path + " could not be read to its end");
  return parse_trace(text, path, pages);
}

// Rank k owns the area under the curve x^-theta from k - 1/2 to k + 1/2. That area is at least the curve's height at k,
// because the curve is convex. So a draw by area is accepted with probability height / area.
Zipf::Zipf(std::uint64_t n, double theta) : n_(static_cast<double>(n)), theta_(theta) {
  area_end_ = area(n_ + 0.5);
  area_begin_ = area(1.5) - 1;
  sure_ = 2 - place(area(2.5) - height(2));
}

std::uint64_t Zipf::operator()(ssd::Random& random) const {
  while (true) {
    const double drawn = area_end_ + random.uniform() * (area_begin_ - area_end_);
    const double x = place(drawn);
    const double rank = std::clamp(std::floor(x + 0.5), 1.0, n_);
    if (rank - x <= sure_ || drawn >= area(rank + 0.5) - height(rank)) return static_cast<std::uint64_t>(rank);
  }
}

double Zipf::area(double x) const {
  const double log_x = std::log(x);
  const double power = (1 - theta_) * log_x;
  // expm1 keeps its precision for theta near 1, where the limit is the logarithm.
  return std::abs(power) < 1e-12 ? log_x : std::expm1(power) / power * log_x;
}

double Zipf::place(double area) const {
  const double power = area * (1 - theta_);
  return std::exp(std::abs(power) < 1e-12 ? area : std::log1p(std::max(power, -1.0)) / power * area);
}

double Zipf::height(double x) const { return std::exp(-theta_ * std::log(x)); }

}  // namespace spillway::pool
