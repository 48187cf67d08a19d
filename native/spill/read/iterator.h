// One iterator over a consistent view of RocksDB and the spill store.
#pragma once

#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "spill/live/column_families.h"
#include "spill/live/generation.h"
#include "spill/live/value_reader.h"

namespace spillway::spill {

// The view that an iterator reads; Refresh() requests a new one.
struct IteratorBase {
  View view;
  std::unique_ptr<rocksdb::Iterator> main;  // RocksDB's, of the same moment, made with main_options()
  std::shared_ptr<void> holds;              // whatever keeps that moment alive, such as RocksDB's snapshot
  std::shared_ptr<const rocksdb::SliceTransform> prefix_extractor;  // that ends the iteration; null: none does
};

// The column family of an iterator, which outlives handles of it.
struct IteratedFamily {
  std::uint32_t id = 0;
  const rocksdb::Comparator* comparator = nullptr;
};

// Whether a view with these generations has nothing of the spill store.
inline bool is_empty(const std::shared_ptr<const Generations>& generations) {
  return generations == nullptr || generations->empty();
}

// The options of RocksDB's iterator beside a view with these generations.
//
// Beside an empty view it is the user's iterator and has the user's options. Beside any other, RocksDB's side has to
// know its next key wherever the iteration stands: beyond the prefix of the seek, and backwards from there. In prefix
// mode RocksDB says neither, for its prefix filters leave out tables and memtables. So that side iterates in total
// order, and prefix_same_as_start is left to the merged iterator, since a key that would end RocksDB's iteration may be
// deleted in the spill store. The price: prefix filters save no reads while something is diverted, and a hash memtable
// is sorted for each iterator.
rocksdb::ReadOptions main_options(rocksdb::ReadOptions options, const std::shared_ptr<const Generations>& generations);
// What then has to end the iteration in RocksDB's place. Null beside an empty view.
std::shared_ptr<const rocksdb::SliceTransform> prefix_extractor_of(rocksdb::ColumnFamilyHandle* handle,
                                                                   const rocksdb::ReadOptions& options,
                                                                   const View& view);

// REQUIRES: base.main was made with main_options() of `options`; no tailing. What the slices in `options` point to
// outlives the iterator, as with RocksDB. `renew` makes a base of now, for Refresh(); a base whose main is an error
// iterator says why there is none, and one without a main that the column family has no handle.
std::unique_ptr<rocksdb::Iterator> make_iterator(IteratorBase base, IteratedFamily family,
                                                 const rocksdb::ReadOptions& options, ValueReader values,
                                                 std::function<IteratorBase()> renew);

}  // namespace spillway::spill
