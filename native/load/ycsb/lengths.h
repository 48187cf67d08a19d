// Lengths between two bounds: of fields in bytes, of scans in records.
#pragma once

#include <cstdint>
#include <optional>

#include "load/ycsb/properties.h"
#include "load/ycsb/zipfian.h"
#include "ssd/structures/random.h"

namespace spillway::load::ycsb {

// `constant` is always the upper bound. `zipfian` favours short lengths.
class Lengths {
 public:
  // REQUIRES: least <= most
  Lengths(Length distribution, std::uint64_t least, std::uint64_t most);

  std::uint64_t next(ssd::Random& random) const {
    if (zipfian_) return least_ + zipfian_->rank(random.uniform());
    return distribution_ == Length::constant ? most_ : least_ + random.below(most_ - least_ + 1);
  }
  // Within about one part in ten thousand for the zipfian distribution, exact for the others.
  double mean() const;

 private:
  Length distribution_;
  std::uint64_t least_;
  std::uint64_t most_;
  std::optional<Zipfian> zipfian_;
};

// Lengths of a record's fields.
Lengths field_lengths(const Properties& properties);

}  // namespace spillway::load::ycsb
