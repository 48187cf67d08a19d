#include "spill/compat/uniform_transaction.h"

#include <rocksdb/iterator.h>

#include <algorithm>

#include "spill/compat/refusals.h"
#include "spill/compat/refused_iterator.h"

namespace spillway::spill {

using rocksdb::Status;

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 3)

Status UniformTransaction::GetEntity(const ReadOptions&, Family*, const Slice&, rocksdb::PinnableWideColumns*) {
  return refuse_in_transaction("GetEntity", kNoWideColumns);
}

void UniformTransaction::MultiGetEntity(const ReadOptions&, Family*, std::size_t count, const Slice*,
                                        rocksdb::PinnableWideColumns*, Status* statuses, bool) {
  std::fill_n(statuses, count, refuse_in_transaction("MultiGetEntity", kNoWideColumns));
}

Status UniformTransaction::PutEntity(Family*, const Slice&, const rocksdb::WideColumns&, bool) {
  return refuse_in_transaction("PutEntity", kNoWideColumns);
}

Status UniformTransaction::PutEntityUntracked(Family*, const Slice&, const rocksdb::WideColumns&) {
  return refuse_in_transaction("PutEntityUntracked", kNoWideColumns);
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 4)

Status UniformTransaction::GetEntityForUpdate(const ReadOptions&, Family*, const Slice&, rocksdb::PinnableWideColumns*,
                                              bool, bool) {
  return refuse_in_transaction("GetEntityForUpdate", kNoWideColumns);
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 8)

std::unique_ptr<rocksdb::AttributeGroupIterator> UniformTransaction::GetAttributeGroupIterator(
    const ReadOptions&, const std::vector<Family*>&) {
  return refused_groups(refuse_in_transaction("GetAttributeGroupIterator", kNoWideColumns));
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 9)

std::unique_ptr<rocksdb::Iterator> UniformTransaction::GetCoalescingIterator(const ReadOptions&,
                                                                             const std::vector<Family*>&) {
  return std::unique_ptr<rocksdb::Iterator>(
      rocksdb::NewErrorIterator(refuse_in_transaction("GetCoalescingIterator", kNoWideColumns)));
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 7)

Status UniformTransaction::CollapseKey(const ReadOptions&, const Slice&, Family*) {
  return refuse_in_transaction("CollapseKey", "a merge that is diverted is resolved when it is written");
}

#endif

}  // namespace spillway::spill
