#include "lsm/key_space.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spillway::lsm {
namespace {

// Sum of r^-theta for r in [first, last), by its integral beyond the first ranks (Euler-Maclaurin to the first term).
double zeta_between(double first, double last, double theta) {
  constexpr double kExact = 64;
  double sum = 0;
  double rank = first;
  for (; rank < last && rank < first + kExact; ++rank) sum += std::pow(rank, -theta);
  if (rank >= last) return sum;
  const auto integral = [theta](double x) { return theta == 1 ? std::log(x) : std::pow(x, 1 - theta) / (1 - theta); };
  return sum + integral(last - 0.5) - integral(rank - 0.5);
}

}  // namespace

double total(const Entries& entries) { return std::accumulate(entries.begin(), entries.end(), 0.0); }

KeySpace::KeySpace(const LoadSpec& load, std::uint32_t grain)
    : overwrites_(load.order == KeyOrder::uniform || load.order == KeyOrder::zipfian),
      sequential_(load.order == KeyOrder::sequential) {
  if (load.order != KeyOrder::zipfian) {
    class_keys_ = {load.keys};
    key_probability_ = {1 / load.keys};
    return;
  }
  double weights = 0;
  double first = 1;
  const double g = grain;
  const double keys = load.keys * g;
  while (first <= keys) {
    const double last = std::min(first * 2, keys + 1);
    const double weight = zeta_between(first, last, load.zipfian_constant);
    class_keys_.push_back((last - first) / g);
    key_probability_.push_back(weight * g / (last - first));
    weights += weight;
    first *= 2;
  }
  for (double& probability : key_probability_) probability /= weights;
}

Entries KeySpace::distinct(double puts) const {
  if (!overwrites_) return {puts};
  Entries entries(classes());
  for (std::size_t c = 0; c < entries.size(); ++c) {
    entries[c] = class_keys_[c] * -std::expm1(-puts * key_probability_[c]);
  }
  return entries;
}

double KeySpace::merged(std::size_t c, double span, std::span<const double> held) const {
  if (!overwrites_) return std::accumulate(held.begin(), held.end(), 0.0);
  const double keys = class_keys_[c] * span;
  if (keys <= 0) return 0;
  double absent = 1;
  for (const double entries : held) absent *= std::max(0.0, 1 - entries / keys);
  return keys * (1 - absent);
}

}  // namespace spillway::lsm
