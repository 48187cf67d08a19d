// Kills and losses of power of spillway::DB with RocksDB's options that change how it logs, recovers, flushes and
// stores. Each life opens the database with other ones, as a user may: any two may meet, and what one life wrote,
// another with other options reads.
#include <gtest/gtest.h>
#include <rocksdb/cache.h>
#include <rocksdb/table.h>

#include <functional>
#include <random>
#include <string>

#include "base/file_bytes.h"
#include "crash_spill.h"

namespace spillway::crash {
namespace {

// How RocksDB logs and recovers.
void draw_log_options(std::mt19937_64& random, rocksdb::Options& options) {
  const auto is_drawn = [&random] { return random() % 3 == 0; };
  if (is_drawn()) options.wal_compression = rocksdb::kZSTD;
  if (is_drawn()) {
    options.recycle_log_file_num = 2;
  } else if (is_drawn()) {  // with the other, RocksDB 7.8.3 itself crashes in MarkLogsSynced
    options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  }
  if (is_drawn()) options.track_and_verify_wals_in_manifest = true;
  if (is_drawn()) options.max_total_wal_size = 128 << 10;
  if (is_drawn()) options.WAL_ttl_seconds = 1;
  if (is_drawn()) options.WAL_size_limit_MB = 1;
  if (is_drawn()) options.wal_bytes_per_sync = 16 << 10;
  if (is_drawn()) options.use_fsync = true;
  if (is_drawn()) options.avoid_flush_during_recovery = true;
  if (is_drawn()) options.avoid_flush_during_shutdown = true;
}

// How it writes its memtables.
void draw_write_options(std::mt19937_64& random, rocksdb::Options& options) {
  const auto is_drawn = [&random] { return random() % 3 == 0; };
  // One excludes the other.
  if (is_drawn()) {
    options.enable_pipelined_write = true;
  } else if (is_drawn()) {
    options.atomic_flush = true;
  }
  if (is_drawn()) options.allow_concurrent_memtable_write = false;
  if (is_drawn()) options.max_successive_merges = 2;
  if (is_drawn()) options.max_write_batch_group_size_bytes = 4 << 10;
  if (is_drawn()) {
    options.max_write_buffer_number = 4;
    options.min_write_buffer_number_to_merge = 2;
  }
  if (is_drawn()) options.max_write_buffer_size_to_maintain = 256 << 10;
}

// How it stores and reads.
void draw_storage_options(std::mt19937_64& random, rocksdb::Options& options) {
  const auto is_drawn = [&random] { return random() % 3 == 0; };
  if (is_drawn()) options.max_open_files = 10;
  if (is_drawn()) options.allow_mmap_reads = true;
  if (is_drawn()) options.enable_blob_files = true;
  if (is_drawn()) options.enable_blob_garbage_collection = true;
  if (is_drawn()) options.level_compaction_dynamic_level_bytes = true;
  if (is_drawn()) options.disable_auto_compactions = true;
  if (is_drawn()) options.level0_file_num_compaction_trigger = 1;
  if (is_drawn()) options.compression = rocksdb::kLZ4Compression;
  if (is_drawn()) {
    rocksdb::BlockBasedTableOptions table;
    table.format_version = 3;
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  }
}

// Each opening makes another MANIFEST, whose name is the seed.
void draw_options(const std::string& path, rocksdb::Options& options) {
  std::mt19937_64 random(std::hash<std::string>()(path + file_bytes(path + "/CURRENT")));
  draw_log_options(random, options);
  draw_write_options(random, options);
  draw_storage_options(random, options);
}

// A row cache excludes DeleteRange.
void draw_options_and_cache_rows(const std::string& path, rocksdb::Options& options) {
  draw_options(path, options);
  options.row_cache = rocksdb::NewLRUCache(1 << 20);
}

TEST(CrashOptions, KilledAtRandom) {
  for (const SpillOptions& spill : {by_ingestion(), by_put()}) {
    expect_kept({.open = open_spillway(spill, draw_options), .stir = stir, .kills = 12, .seed = 61});
  }
}

TEST(CrashOptions, PowerCutAtRandom) {
  for (const SpillOptions& spill : {by_ingestion(), by_put()}) {
    expect_kept(
        {.open = open_spillway(spill, draw_options), .stir = stir, .kills = 12, .seed = 62, .power_loss = true});
  }
}

// RocksDB keeps what it logs in memory until somebody flushes its log. So not even a kill leaves all of it.
void draw_options_and_buffer_the_log(const std::string& path, rocksdb::Options& options) {
  draw_options(path, options);
  options.manual_wal_flush = true;
}

TEST(CrashOptions, PowerCutAtRandomWithABufferedLog) {
  for (const SpillOptions& spill : {by_ingestion(), by_put()}) {
    expect_kept({.open = open_spillway(spill, draw_options_and_buffer_the_log),
                 .stir = stir,
                 .kills = 12,
                 .seed = 64,
                 .power_loss = true,
                 .also_kills = false});
  }
}

TEST(CrashOptions, PowerCutAtRandomWithARowCache) {
  expect_kept({.open = open_spillway(by_ingestion(), draw_options_and_cache_rows),
               .stir = stir,
               .kinds = {.remove_range = false},
               .kills = 12,
               .seed = 63,
               .power_loss = true});
}

}  // namespace
}  // namespace spillway::crash
