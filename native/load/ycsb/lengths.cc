#include "load/ycsb/lengths.h"

namespace spillway::load::ycsb {

Lengths::Lengths(Length distribution, std::uint64_t least, std::uint64_t most)
    : distribution_(distribution), least_(least), most_(most) {
  if (distribution == Length::zipfian) zipfian_.emplace(most - least + 1, kZipfianConstant);
}

double Lengths::mean() const {
  if (!zipfian_) {
    const auto most = static_cast<double>(most_);
    return distribution_ == Length::constant ? most : (static_cast<double>(least_) + most) / 2;
  }
  constexpr int kDraws = 1 << 16;  // evenly spaced over the uniform number's range
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) sum += static_cast<double>(zipfian_->rank((i + 0.5) / kDraws));
  return static_cast<double>(least_) + sum / kDraws;
}

Lengths field_lengths(const Properties& properties) {
  return {properties.fieldlengthdistribution, properties.minfieldlength, properties.fieldlength};
}

}  // namespace spillway::load::ycsb
