// Reads of both stores. The key index says which store has the newest version of a key. Snapshots and iterators see a
// consistent view of both.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <span>
#include <vector>

#include "spill/commit/commit_queue.h"
#include "spill/live/live_set.h"
#include "spill/live/value_reader.h"
#include "spill/main_db/main_db.h"
#include "spill/read/iterator.h"
#include "spill/read/read_state.h"
#include "spill/report/telemetry.h"
#include "spill/store/store.h"

namespace spillway::spill {

// Keys of a MultiGet, as in RocksDB's arguments: `families[i]` is the family of `keys[i]`.
struct KeysToGet {
  std::size_t count = 0;
  rocksdb::ColumnFamilyHandle** families = nullptr;
  const rocksdb::Slice* keys = nullptr;
  rocksdb::PinnableSlice* values = nullptr;
  rocksdb::Status* statuses = nullptr;
};

// Thread-safe. The methods are those of rocksdb::DB, with its contracts.
class Reader {
 public:
  Reader(const Store& store, ValueReader values, MainDb& main, LiveSet& live, CommitQueue& queue, Telemetry& telemetry)
      : store_(store), values_(values), main_(main), live_(live), queue_(queue), telemetry_(telemetry) {}

  rocksdb::Status get(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                      const rocksdb::Slice& key, rocksdb::PinnableSlice* value);
  void multi_get(const rocksdb::ReadOptions& options, const KeysToGet& keys, bool is_sorted);
  // RocksDB's older function, whose size limit counts over all column families.
  std::vector<rocksdb::Status> multi_get(const rocksdb::ReadOptions& options,
                                         const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                         const std::vector<rocksdb::Slice>& keys, std::vector<std::string>* values);
  bool key_may_exist(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                     const rocksdb::Slice& key, std::string* value, bool* value_found);
  rocksdb::Iterator* new_iterator(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family);
  rocksdb::Status new_iterators(const rocksdb::ReadOptions& options,
                                const std::vector<rocksdb::ColumnFamilyHandle*>& families,
                                std::vector<rocksdb::Iterator*>* iterators);
  // Verifies every record of every generation that is live now.
  rocksdb::Status verify_checksums() const;

  const rocksdb::Snapshot* get_snapshot();
  void release_snapshot(const rocksdb::Snapshot* snapshot);
  // Called by a database that closes without waiting for their release. They would keep its spill store and its lock.
  void release_snapshots() { snapshots_.release_all(); }

 private:
  // The view as of the last call of `take_main`, which takes RocksDB's side of it.
  View take_view(const LiveSet::TakeMain& take_main);
  bool has_nothing_diverted() const { return !live_.has_any() && !live_.dropped().has_any(); }
  ReadState take_state();
  ReadState state_of(const rocksdb::ReadOptions& options);

  rocksdb::Status get_at(const ReadState& state, const rocksdb::ReadOptions& options,
                         rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& key, rocksdb::PinnableSlice* value);
  // For a key that is in no live generation: RocksDB has it, unless its family was dropped.
  rocksdb::Status get_from_main(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                                const rocksdb::Slice& key, rocksdb::PinnableSlice* value);
  rocksdb::Status get_covered(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family,
                              const rocksdb::Slice& key, rocksdb::PinnableSlice* value);
  rocksdb::Status value_of(const Entry& entry, const rocksdb::ReadOptions& options, rocksdb::PinnableSlice* value);
  enum class SizeLimit : std::uint8_t { of_each_family, of_all };
  void get_in_order(const ReadState& state, const rocksdb::ReadOptions& options, std::span<const std::size_t> order,
                    SizeLimit limit, const KeysToGet& keys);

  IteratorSource base_of_now(const rocksdb::ReadOptions& options, rocksdb::ColumnFamilyHandle* family);
  IteratorSource base_at(const ReadState& state, const rocksdb::ReadOptions& options,
                         rocksdb::ColumnFamilyHandle* family);
  // Of options.snapshot, or of the current state where that is null.
  IteratorSource base_at_any(const rocksdb::ReadOptions& options, std::uint32_t id);
  rocksdb::Iterator* iterator_on(IteratorSource on, const rocksdb::ReadOptions& options,
                                 rocksdb::ColumnFamilyHandle* family);
  rocksdb::Iterator* iterator_at(const ReadState& state, const rocksdb::ReadOptions& options,
                                 rocksdb::ColumnFamilyHandle* family);

  const Store& store_;
  const ValueReader values_;
  MainDb& main_;
  LiveSet& live_;
  CommitQueue& queue_;
  Telemetry& telemetry_;
  Snapshots snapshots_;
};

}  // namespace spillway::spill
