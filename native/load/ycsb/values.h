// The values of records: new ones, and existing ones with one field replaced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/client/pairs.h"
#include "load/ycsb/lengths.h"
#include "load/ycsb/properties.h"

namespace spillway::load::ycsb {

// Bytes for the records of these properties. Each field compresses to `compression_ratio` by itself, so a record keeps
// the ratio after any of its fields is replaced.
ValueBuffer make_values(const Properties& properties, double compression_ratio, std::uint64_t seed);

// Belongs to one thread.
class RecordValues {
 public:
  // `bytes`, of make_values(), outlives it.
  RecordValues(const Properties& properties, const ValueBuffer& bytes, std::uint64_t seed);

  // A new record. Valid until the next call.
  std::string_view whole();
  // Replaces one of the fields of `record`, which whole() made, by a new one. If field lengths differ and the layout
  // has no names to find a field's end, an equal share of the record is replaced.
  void replace_field(std::string& record, std::uint32_t field);

 private:
  std::string_view next_bytes();
  std::uint64_t next_length() { return lengths_.next(random_); }

  const ValueBuffer& bytes_;
  Lengths lengths_;
  std::uint32_t fieldcount_;
  std::uint32_t fieldlength_;
  bool sliced_;                     // a record is a slice of `bytes`
  std::vector<std::string> names_;  // of the fields; empty if the layout has none
  ssd::Random random_;
  std::uint64_t next_;
  std::string record_;
};

}  // namespace spillway::load::ycsb
