// RocksDB's iterator and the spill store's entries as one (K9, with T26's rules: one version of a key, the newest that
// the view has; deletions hide; both directions, bounds and snapshots).
#pragma once

#include <rocksdb/iterator.h>
#include <rocksdb/options.h>

#include <functional>
#include <memory>

#include "spill/column_families.h"
#include "spill/generation.h"
#include "spill/value_reader.h"

namespace spillway::spill {

// What an iterator stands on; Refresh() asks for a new one.
struct IteratorBase {
  View view;
  std::unique_ptr<rocksdb::Iterator> main;  // RocksDB's, of the same moment
  std::shared_ptr<void> holds;              // whatever keeps that moment alive, such as RocksDB's snapshot
};

// REQUIRES: base.main has the bounds of `options`, but neither prefix_same_as_start nor tailing: those are seen to
// here, for a key that ends RocksDB's iteration may be deleted in the spill store. Takes the bounds,
// prefix_same_as_start, tailing and read_tier from `options`; the slices they point to outlive the iterator, as with
// RocksDB. `renew` makes a base of now, for Refresh(); a base whose main is an error iterator says why there is none.
std::unique_ptr<rocksdb::Iterator> make_iterator(IteratorBase base, const ColumnFamily& family,
                                                 const rocksdb::ReadOptions& options, ValueReader values,
                                                 std::function<IteratorBase()> renew);

}  // namespace spillway::spill
