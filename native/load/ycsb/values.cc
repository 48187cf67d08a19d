#include "load/ycsb/values.h"

#include <algorithm>

namespace spillway::load::ycsb {
namespace {

constexpr std::size_t kLengthBytes = 4;  // length fields of names and of fields; least significant byte first

void append_length(std::string& bytes, std::uint64_t length) {
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes.push_back(static_cast<char>(length >> (8 * i) & 0xff));
}

std::uint64_t length_at(const std::string& bytes, std::size_t at) {
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
  return length;
}

}  // namespace

ValueBuffer make_values(const Properties& properties, double compression_ratio, std::uint64_t seed) {
  PairSpec pairs;
  pairs.value_bytes = properties.fieldcount * properties.fieldlength;
  pairs.compression_ratio = compression_ratio;
  return {pairs, seed, properties.fieldlength};
}

RecordValues::RecordValues(const Properties& properties, const ValueBuffer& bytes, std::uint64_t seed)
    : bytes_(bytes),
      lengths_(field_lengths(properties)),
      fieldcount_(properties.fieldcount),
      fieldlength_(properties.fieldlength),
      sliced_(properties.layout == Layout::values && properties.fieldlengthdistribution == Length::constant),
      random_(seed),
      next_(seed % bytes.values()) {
  if (properties.layout == Layout::values) return;
  for (std::uint32_t field = 0; field < fieldcount_; ++field) {
    names_.push_back(properties.fieldnameprefix + std::to_string(field));
  }
}

std::string_view RecordValues::next_bytes() {
  const std::string_view bytes = bytes_.value(next_);
  if (++next_ == bytes_.values()) next_ = 0;
  return bytes;
}

std::string_view RecordValues::whole() {
  const std::string_view bytes = next_bytes();
  if (sliced_) return bytes;
  record_.clear();
  for (std::uint32_t field = 0; field < fieldcount_; ++field) {
    const std::uint64_t length = next_length();
    if (!names_.empty()) {
      append_length(record_, names_[field].size());
      record_ += names_[field];
      append_length(record_, length);
    }
    record_ += bytes.substr(std::uint64_t{field} * fieldlength_, length);
  }
  return record_;
}

void RecordValues::replace_field(std::string& record, std::uint32_t field) {
  const std::uint64_t length = next_length();
  const std::string_view bytes = next_bytes().substr(std::uint64_t{field} * fieldlength_, length);
  if (names_.empty()) {
    const std::size_t begin = record.size() * field / fieldcount_;
    const std::size_t end = record.size() * (field + 1) / fieldcount_;
    record.replace(begin, end - begin, bytes);
    return;
  }
  std::size_t at = 0;
  for (std::uint32_t before = 0; before < field; ++before) {
    at += kLengthBytes + names_[before].size();
    at += kLengthBytes + length_at(record, at);
  }
  at += kLengthBytes + names_[field].size();
  const std::uint64_t old_length = length_at(record, at);
  std::string replacement;
  append_length(replacement, length);
  replacement += bytes;
  record.replace(at, kLengthBytes + old_length, replacement);
}

}  // namespace spillway::load::ycsb
