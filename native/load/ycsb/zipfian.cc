#include "load/ycsb/zipfian.h"

#include <algorithm>
#include <cmath>

namespace spillway::load::ycsb {

double zeta(std::uint64_t n, double theta) {
  constexpr std::uint64_t kTerms = 1 << 16;  // summed exactly; takes a millisecond
  const std::uint64_t exact = std::min(n, kTerms);
  double sum = 0;
  for (std::uint64_t i = exact; i > 0; --i) sum += std::pow(static_cast<double>(i), -theta);  // smallest first
  if (n == exact) return sum;
  const auto from = static_cast<double>(exact);
  const auto to = static_cast<double>(n);
  const double integral = (std::pow(to, 1 - theta) - std::pow(from, 1 - theta)) / (1 - theta);
  const double ends = (std::pow(to, -theta) - std::pow(from, -theta)) / 2;
  const double slopes = -theta * (std::pow(to, -theta - 1) - std::pow(from, -theta - 1)) / 12;
  return sum + integral + ends + slopes;
}

Zipfian::Zipfian(std::uint64_t items, double theta)
    : items_(items), theta_(theta), zeta_n_(zeta(items, theta)), zeta_2_(zeta(2, theta)) {
  refresh();
}

void Zipfian::grow(std::uint64_t items) {
  if (items == items_) return;
  while (items_ < items) zeta_n_ += std::pow(static_cast<double>(++items_), -theta_);
  refresh();
}

// With up to two items every draw has an exact share, and eta would be 0/0.
void Zipfian::refresh() {
  if (items_ <= 2) return;
  eta_ = (1 - std::pow(2.0 / static_cast<double>(items_), 1 - theta_)) / (1 - zeta_2_ / zeta_n_);
}

std::uint64_t Zipfian::rank(double u) const {
  const double scaled = u * zeta_n_;
  if (scaled < 1) return 0;
  if (items_ <= 2 || scaled < zeta_2_) return std::min<std::uint64_t>(1, items_ - 1);
  const double drawn = static_cast<double>(items_) * std::pow(eta_ * u - eta_ + 1, 1 / (1 - theta_));
  return std::min(static_cast<std::uint64_t>(drawn), items_ - 1);
}

}  // namespace spillway::load::ycsb
