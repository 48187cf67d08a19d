#include "lsm/key_space.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace spillway::lsm {
namespace {

constexpr double kFewKeys = 0.5;  // fewer without a rank are none

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

// Ranks of a power of two, and the share of the puts that they have.
struct RankClass {
  double ranks = 0;
  double share = 0;
};

std::vector<RankClass> rank_classes(double ranks, double theta) {
  std::vector<RankClass> classes;
  double all = 0;
  double first = 1;
  while (first <= ranks) {
    const double last = std::min(first * 2, ranks + 1);
    const double weight = zeta_between(first, last, theta);
    classes.push_back({last - first, weight});
    all += weight;
    first *= 2;
  }
  for (RankClass& one : classes) one.share /= all;
  return classes;
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
  const double g = grain;
  const double keys = load.keys * g;
  if (load.zipfian_ranks > 0) {
    scatter(load.zipfian_ranks, keys, load.zipfian_constant);
  } else {
    for (const RankClass& one : rank_classes(keys, load.zipfian_constant)) {
      class_keys_.push_back(one.ranks);
      key_probability_.push_back(one.share / one.ranks);
    }
  }
  for (double& count : class_keys_) count /= g;
  for (double& probability : key_probability_) probability *= g;
}

void KeySpace::scatter(double ranks, double keys, double theta) {
  double later = 1;       // share of the puts that later classes have
  double untaken = keys;  // that have no rank yet
  for (const RankClass& one : rank_classes(ranks, theta)) {
    later = std::max(0.0, later - one.share);
    const double taken = untaken * -std::expm1(-one.ranks / keys);
    class_keys_.push_back(taken);
    key_probability_.push_back(one.share * untaken / keys / taken + later / keys);
    untaken -= taken;
    if (untaken < kFewKeys) break;
  }
  if (untaken < kFewKeys) {
    class_keys_.back() += untaken;
  } else {  // that are never put
    class_keys_.push_back(untaken);
    key_probability_.push_back(0);
  }
}

Entries KeySpace::distinct(double puts) const {
  if (!overwrites_) return {puts};
  Entries entries(classes());
  for (std::size_t c = 0; c < entries.size(); ++c) {
    entries[c] = class_keys_[c] * -std::expm1(-puts * key_probability_[c]);
  }
  return entries;
}

Entries KeySpace::all(double span) const {
  Entries entries;
  for (const double keys : class_keys_) entries.push_back(keys * span);
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
