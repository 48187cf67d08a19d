// Values that RocksDB's options accept, and that RocksDB does not use as given: each is refused before anything is
// opened, and values that it does use are accepted.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/factory/factory.h"
#include "engine/rocksdb/options.h"
#include "temporary_directory.h"

namespace spillway::engine {
namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

void expect_refused(const Named& options) {
  for (const auto& [name, value] : options) {
    const auto parsed = parse_rocksdb_options({{name, value}});
    ASSERT_FALSE(parsed.is_ok()) << name << " = " << value;
    EXPECT_EQ(parsed.status().fault(), Fault::bad_input);
    const std::string& message = parsed.status().message();
    EXPECT_TRUE(message.starts_with("engine.options." + name + ": RocksDB does not take '")) << message;
  }
}

TEST(RocksdbValues, NegativeOnesOfUnsignedOptionsDoNotWrap) {
  expect_refused({{"write_buffer_size", "-1"},
                  {"min_blob_size", "-5"},
                  {"ttl", "-1"},
                  {"db_write_buffer_size", "-1"},
                  {"delayed_write_rate", "-1"},
                  {"block_cache", "-1"},
                  {"compaction_options_fifo", "{max_table_files_size=-1}"}});
}

TEST(RocksdbValues, NumbersAreReadToTheirEnd) {
  expect_refused({{"write_buffer_size", "12abc"},
                  {"write_buffer_size", "64 MiB"},
                  {"write_buffer_size", "1e6"},
                  {"write_buffer_size", "1.5GiB"},
                  {"write_buffer_size", "64MB"},
                  {"write_buffer_size", "99999999999G"},
                  {"write_buffer_size", "99999999999999999999999"},
                  {"num_levels", "7x"},
                  {"max_background_jobs", "4294967298"},
                  {"block_size", "4096 bytes"},
                  {"block_cache", "64x"},
                  {"max_bytes_for_level_multiplier", "10x"}});
}

TEST(RocksdbValues, OnlyFiniteNumbersAreTaken) {
  expect_refused({{"max_bytes_for_level_multiplier", "nan"},
                  {"max_bytes_for_level_multiplier", "inf"},
                  {"max_bytes_for_level_multiplier", "1e999"},
                  {"blob_garbage_collection_age_cutoff", "nan"},
                  {"experimental_mempurge_threshold", "-inf"}});
}

// RocksDB would silently use another value, or end the process.
TEST(RocksdbValues, OutOfBoundsTheyAreRefused) {
  expect_refused({{"num_levels", "-3"},
                  {"num_levels", "0"},
                  {"num_levels", "1"},  // for leveled compaction
                  {"num_levels", "1000000000"},
                  {"max_background_jobs", "1000000"},
                  {"max_background_jobs", "0"},
                  {"max_subcompactions", "0"},
                  {"max_open_files", "-7"},
                  {"max_write_buffer_number", "-3"},
                  {"level0_file_num_compaction_trigger", "-5"},
                  {"max_bytes_for_level_multiplier", "-5"},
                  {"memtable_prefix_bloom_size_ratio", "9"},
                  {"blob_garbage_collection_age_cutoff", "7"}});
}

TEST(RocksdbValues, ObjectsOfUnknownNamesAreRefused) {
  expect_refused({{"merge_operator", "nonsense"},
                  {"compaction_filter", "nonsense"},
                  {"compaction_filter_factory", "nonsense"},
                  {"memtable_factory", "nonsense"},
                  {"prefix_extractor", "nonsense"},
                  {"table_factory", "nonsense"},
                  {"sst_partitioner_factory", "nonsense"},
                  {"wal_filter", "nonsense"},
                  {"filter_policy", "nonsense"},
                  {"compaction_pri", "nonsense"},
                  {"compaction_options_fifo", "{nonsense=1}"}});
}

TEST(RocksdbValues, OptionsThatARunDependsOnAreRefused) {
  for (const char* const name :
       {"comparator", "create_if_missing", "db_log_dir", "env", "error_if_exists", "statistics", "wal_dir"}) {
    const auto parsed = parse_rocksdb_options({{name, "true"}});
    ASSERT_FALSE(parsed.is_ok()) << name;
    EXPECT_EQ(parsed.status().message(), std::string("engine.options.") + name + ": is set by Spillway; remove it");
  }
}

TEST(RocksdbValues, ValuesThatRocksdbUsesUnchangedAreAccepted) {
  for (const auto& [name, value] :
       Named{{"write_buffer_size", "64M"},
             {"write_buffer_size", "64m"},
             {"write_buffer_size", "64MiB"},
             {"write_buffer_size", "18446744073709551615"},
             {"target_file_size_base", "2g"},
             {"max_open_files", "-1"},
             {"max_background_compactions", "-1"},
             {"max_bytes_for_level_multiplier", "10"},
             {"max_bytes_for_level_multiplier", "2.5"},
             {"merge_operator", "put"},
             {"prefix_extractor", "fixed:8"},
             {"memtable_factory", "skip_list"},
             {"compaction_options_universal", "{size_ratio=5;max_size_amplification_percent=100}"},
             {"compaction_options_fifo", "{max_table_files_size=1000000}"},
             {"compression_per_level", "kNoCompression:kNoCompression:kLZ4Compression"},
             {"max_bytes_for_level_multiplier_additional", "1:1:2"},
             {"compression_opts", "4:5:6:0"},
             {"block_cache", "64M"},
             {"block_cache", "{capacity=1M;num_shard_bits=4}"},
             {"disable_auto_compactions", "1"}}) {
    const auto parsed = parse_rocksdb_options({{name, value}});
    EXPECT_TRUE(parsed.is_ok()) << name << " = " << value << ": " << parsed.status().message();
  }
}

// RocksDB opens with these, and then accepts no write.
TEST(RocksdbValues, ValuesWithWhichNoWriteSucceedsAreRefused) {
  const auto parsed = parse_rocksdb_options({{"sync", "true"}, {"disableWAL", "true"}});
  ASSERT_FALSE(parsed.is_ok());
  EXPECT_EQ(parsed.status().fault(), Fault::bad_input);
  EXPECT_TRUE(parsed.status().message().starts_with("engine.options.sync: ")) << parsed.status().message();
  for (const char* const name : {"sync", "disableWAL"}) EXPECT_TRUE(parse_rocksdb_options({{name, "true"}}).is_ok());
}

// Options that are valid individually, and with which RocksDB does not open a database.
TEST(RocksdbValues, ErrorsThatOnlyOpeningShowsAreBadInput) {
  const TemporaryDirectory temporary(memory_path());
  auto opened = open_engine(
      {.directory = temporary.path("db"), .options = {{"use_direct_reads", "true"}, {"allow_mmap_reads", "true"}}});
  ASSERT_FALSE(opened.is_ok());
  EXPECT_EQ(opened.status().fault(), Fault::bad_input);
  EXPECT_TRUE(opened.status().message().starts_with("engine.options: ")) << opened.status().message();
}

}  // namespace
}  // namespace spillway::engine
