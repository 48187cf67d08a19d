// Merges RocksDB's iterator with the spill store's entries (K9, with T26's rules: one version of a key, the newest in
// the view; deletions hide; both directions, bounds and snapshots).
#pragma once

#include <rocksdb/iterator.h>
#include <rocksdb/options.h>

#include <memory>

#include "spill/live/value_reader.h"
#include "spill/read/iterator.h"

namespace spillway::spill {

// It applies the bounds, prefix_same_as_start, read_tier, deadline, ignore_range_deletions and
// max_skippable_internal_keys of `options`. RocksDB's iterator applies the others.
// REQUIRES: as make_iterator(), and a view that is not empty.
std::unique_ptr<rocksdb::Iterator> make_merged_iterator(IteratorSource base, const IteratedFamily& family,
                                                        const rocksdb::ReadOptions& options, ValueReader values);

}  // namespace spillway::spill
