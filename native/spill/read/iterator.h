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

// The view that an iterator reads. Refresh() requests a new one.
struct IteratorSource {
  View view;
  std::unique_ptr<rocksdb::Iterator> main;  // RocksDB's, of the same state, made with main_options()
  std::shared_ptr<void> holds;              // keeps that state alive, for example RocksDB's snapshot
  std::shared_ptr<const rocksdb::SliceTransform> prefix_extractor;  // ends the iteration; null: no prefix does
};

// A new source for Refresh(): of a snapshot, or for null of the current state.
using RenewSource = std::function<IteratorSource(const rocksdb::Snapshot*)>;

// The column family of an iterator. It may outlive the handles of the family.
struct IteratedFamily {
  std::uint32_t id = 0;
  const rocksdb::Comparator* comparator = nullptr;
};

// Whether the view contains nothing of the spill store.
inline bool is_empty(const std::shared_ptr<const Generations>& generations) {
  return generations == nullptr || generations->empty();
}

// The options of RocksDB's iterator in a view with these generations.
//
// In an empty view the user gets RocksDB's iterator, with the user's options. In any other view the merged iterator
// must know RocksDB's next key at every position: beyond the prefix of the seek, and backwards from there. In prefix
// mode RocksDB returns neither, because its prefix filters skip tables and memtables. So RocksDB's side iterates in
// total order. The merged iterator applies prefix_same_as_start itself, because a key that would end RocksDB's
// iteration may be deleted in the spill store. The price: prefix filters save no reads while anything is diverted, and
// a hash memtable is sorted for each iterator.
rocksdb::ReadOptions main_options(rocksdb::ReadOptions options, const std::shared_ptr<const Generations>& generations);
// The extractor by which the merged iterator then ends the iteration in RocksDB's place. Null in an empty view.
std::shared_ptr<const rocksdb::SliceTransform> prefix_extractor_of(rocksdb::ColumnFamilyHandle* handle,
                                                                   const rocksdb::ReadOptions& options,
                                                                   const View& view);

// REQUIRES: base.main was made with main_options() of `options`; no tailing. The memory to which slices in `options`
// point outlives the iterator, as with RocksDB. If `renew` has no source, its `main` is an iterator with the error as
// its status, or null if the column family has no handle.
std::unique_ptr<rocksdb::Iterator> make_iterator(IteratorSource base, IteratedFamily family,
                                                 const rocksdb::ReadOptions& options, ValueReader values,
                                                 RenewSource renew);

}  // namespace spillway::spill
