#include "spill/live/entry.h"

#include <rocksdb/comparator.h>

namespace spillway::spill {

bool EntryOrder::before(const Entry& entry, std::uint32_t column_family, std::string_view key,
                        Sequence sequence) const {
  if (entry.column_family != column_family) return entry.column_family < column_family;
  static const rocksdb::Comparator* const bytewise = rocksdb::BytewiseComparator();
  const rocksdb::Comparator* const comparator = families_->comparator(column_family);
  const int order = comparator == bytewise ? entry.key().compare(key) : comparator->Compare(entry.key(), key);
  return order != 0 ? order < 0 : entry.sequence > sequence;
}

}  // namespace spillway::spill
