// The steps of a commit group in the spill store: space, checks, merges, order with RocksDB's log, index entries.
//
// Here a sync write that is diverted becomes durable: RocksDB's log first (MainDb::make_durable), for the write may
// come after others that are there, then the append, then the spill store (SpillWriter::sync). One that goes to RocksDB
// becomes durable in route/main_writer.cc: RocksDB's own sync first, then what was diverted before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "spill/commit/commit_pipeline.h"
#include "spill/commit/ordering_notes.h"
#include "spill/commit/spill_writer.h"
#include "spill/commit/store_usage.h"
#include "spill/live/value_reader.h"
#include "spill/store/write_pacer.h"

namespace spillway::spill {

// Adds the operations of a batch to a generation and to the index, newest last; the first gets sequence `first`.
// `offset` is that of the batch's record. Returns the next sequence. `may_replace`: as in KeyIndex::write.
// REQUIRES: the batch can be diverted and has no merges.
Sequence add_entries_of(const rocksdb::WriteBatch& batch, std::uint64_t offset, Sequence first, Generation& generation,
                        KeyIndex& index, bool may_replace) REQUIRES(in_commit_queue);

class SpillCommitter final : public CommitEnv {
 public:
  SpillCommitter(const CommitContext& context, const StoreUsage& usage, WritePacer& pacer, SpillWriter& writer,
                 OrderingNotes& notes, ValueReader values)
      : context_(context), usage_(usage), pacer_(pacer), writer_(writer), notes_(notes), values_(values) {}

  bool has_live() const override { return context_.live.has_any(std::memory_order_seq_cst); }
  std::chrono::nanoseconds pace(std::span<Commit* const> group) override REQUIRES(in_commit_queue);
  std::uint64_t most_group_bytes() const override;
  rocksdb::Status admit(const Commit& commit, std::uint64_t group_bytes) override REQUIRES(in_commit_queue);
  rocksdb::Status prepare(Commit& commit, PreparedCommit* prepared) override REQUIRES(in_commit_queue);
  rocksdb::Status append(std::span<PreparedCommit> group, bool sync) override REQUIRES(in_commit_queue);
  void apply(std::span<const PreparedCommit> group) override REQUIRES(in_commit_queue);

 private:
  rocksdb::Status check(const rocksdb::WriteBatch& batch, bool must_divert) const;
  rocksdb::Status check_family(std::uint32_t family, bool must_divert) const;
  // The newest value of a key. REQUIRES: the key is announced, so no write to RocksDB changes it.
  rocksdb::Status newest_value(std::uint32_t family, const rocksdb::Slice& key, std::optional<std::string>* value);
  rocksdb::Status resolve(PreparedCommit* prepared);
  rocksdb::Status refuse(Commit& commit, const rocksdb::Status& status) REQUIRES(in_commit_queue);
  bool is_full_size(const Generation& generation) const;

  const CommitContext& context_;
  const StoreUsage& usage_;
  WritePacer& pacer_;
  SpillWriter& writer_;
  OrderingNotes& notes_;
  const ValueReader values_;
  std::chrono::nanoseconds paced_ GUARDED_BY(in_commit_queue){0};  // the present group
};

}  // namespace spillway::spill
