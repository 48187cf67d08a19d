// A plain RocksDB and a spillway::DB with the same column families, which must give the same answers.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "spill/compat/db_out.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {

using Side = std::size_t;
inline constexpr Side kPlain = 0;
inline constexpr Side kSpill = 1;
inline constexpr std::size_t kSides = 2;

template <typename T>
using Both = std::array<T, kSides>;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t sides) { return engine_() % sides; }
  bool one_in(std::uint64_t sides) { return below(sides) == 0; }
  template <typename T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// Files without syncs: these tests do not outlive the process.
class NoSyncFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  NoSyncFileSystem() : FileSystemWrapper(FileSystem::Default()) {}
  static const char* kClassName() { return "NoSyncFileSystem"; }
  const char* Name() const override { return kClassName(); }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    return wrap(target()->NewWritableFile(path, options, file, context), file);
  }
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* context) override {
    return wrap(target()->ReopenWritableFile(path, options, file, context), file);
  }
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* context) override {
    const rocksdb::IOStatus status = target()->NewDirectory(path, options, directory, context);
    if (status.ok()) *directory = std::make_unique<Directory>(std::move(*directory));
    return status;
  }

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
    rocksdb::IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override { return {}; }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override { return {}; }
    rocksdb::IOStatus RangeSync(std::uint64_t, std::uint64_t, const rocksdb::IOOptions&,
                                rocksdb::IODebugContext*) override {
      return {};
    }
  };
  class Directory final : public rocksdb::FSDirectoryWrapper {
   public:
    using FSDirectoryWrapper::FSDirectoryWrapper;
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override { return {}; }
    rocksdb::IOStatus FsyncWithDirOptions(const rocksdb::IOOptions&, rocksdb::IODebugContext*,
                                          const rocksdb::DirFsyncOptions&) override {
      return {};
    }
  };

  static rocksdb::IOStatus wrap(const rocksdb::IOStatus& status, std::unique_ptr<rocksdb::FSWritableFile>* file) {
    if (status.ok()) *file = std::make_unique<File>(std::move(*file));
    return status;
  }
};

// Not commutative, so that a lost, duplicated or reordered operand is visible.
class Append final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* result, rocksdb::Logger* /*logger*/) const override {
    *result = existing ? existing->ToString() + "," + value.ToString() : value.ToString();
    return true;
  }
  static const char* kClassName() { return "Append"; }
  const char* Name() const override { return kClassName(); }
};

// Numbers as text: a lost or duplicated increment gives a wrong count.
class Add final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* result, rocksdb::Logger* /*logger*/) const override {
    const std::uint64_t before = existing ? std::stoull(existing->ToString()) : 0;
    *result = std::to_string(before + std::stoull(value.ToString()));
    return true;
  }
  static const char* kClassName() { return "Add"; }
  const char* Name() const override { return kClassName(); }
};

struct Family {
  std::string name;
  const rocksdb::Comparator* comparator = nullptr;
  Both<rocksdb::ColumnFamilyHandle*> handles{};
  bool counts = false;  // its merges are additions
};

class TwoDatabases {
 public:
  using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;

  // The seed determines the size of generations, how full the spill store gets, and how it is brought back.
  explicit TwoDatabases(std::uint64_t seed, bool with_counters = false) {
    Random random(seed);
    spill_options_.generation_bytes = random.of<std::uint64_t>({500, 10'000, 1'000'000});
    spill_options_.capacity_bytes = random.of<std::uint64_t>({50'000, 1'000'000, 100'000'000});
    spill_options_.capacity_bytes = std::max(spill_options_.capacity_bytes, 2 * spill_options_.generation_bytes);
    spill_options_.index_bytes = random.of<std::uint64_t>({200'000, 100'000'000});
    spill_options_.put_back_bytes = random.of<std::uint64_t>({0, 0, 3'000, 100'000'000});
    spill_options_.rollback = random.of<RollbackPolicy>(
        {RollbackPolicy::adaptive, RollbackPolicy::eager, RollbackPolicy::lazy, RollbackPolicy::off});
    spill_options_.poll_ms = 2;
    has_prefix_filters_ = random.one_in(2);
    families_.push_back({rocksdb::kDefaultColumnFamilyName, rocksdb::BytewiseComparator()});
    families_.push_back({"backwards", rocksdb::ReverseBytewiseComparator()});
    if (with_counters) families_.push_back({"counters", rocksdb::BytewiseComparator(), {}, /*counts=*/true});
    open();
  }
  ~TwoDatabases() { close(); }
  TwoDatabases(const TwoDatabases&) = delete;
  TwoDatabases& operator=(const TwoDatabases&) = delete;

  rocksdb::DB& of(Side side) { return *databases_[side]; }
  DB& spill() { return *spill_; }
  std::vector<Family>& families() { return families_; }

  // Whether iterators must have a defined prefix mode: RocksDB skips tables in prefix mode.
  bool has_prefix_filters() const { return has_prefix_filters_; }

  // A path that does not exist yet.
  std::string new_path(const std::string& kind) {
    return directory_.path(kind + " " + std::to_string(paths_.fetch_add(1)));
  }

  rocksdb::ColumnFamilyOptions options_of(const Family& family) const {
    rocksdb::ColumnFamilyOptions options;
    options.comparator = family.comparator;
    options.merge_operator = std::make_shared<Append>();
    if (family.counts) options.merge_operator = std::make_shared<Add>();
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
    if (has_prefix_filters_) {
      rocksdb::BlockBasedTableOptions table;
      table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(20));
      table.whole_key_filtering = false;
      options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
      options.memtable_prefix_bloom_size_ratio = 0.1;
    }
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = 64 << 10;
    options.target_file_size_base = 64 << 10;
    options.max_bytes_for_level_base = 128 << 10;
    options.level0_file_num_compaction_trigger = 2;
    return options;
  }

  void reopen() {
    const std::lock_guard lock(open_mutex_);
    close();
    open();
  }

  // Waits while they are reopened.
  void rollback() {
    const std::lock_guard lock(open_mutex_);
    const rocksdb::Status status = spill_->Rollback();
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  // Diverted operations, summed over all openings.
  std::uint64_t diverted() { return diverted_ + spill_->GetSpillStatistics().diverted_writes; }

  // A checkpoint of each, opened by plain RocksDB.
  Both<std::unique_ptr<rocksdb::DB>> open_checkpoints(Both<Handles>& handles) {
    Both<std::unique_ptr<rocksdb::DB>> opened;
    for (const Side side : {kPlain, kSpill}) opened[side] = open_checkpoint(side, "copy", &handles[side]);
    return opened;
  }

  std::unique_ptr<rocksdb::DB> open_checkpoint(Side side, const std::string& name, Handles* handles) {
    const std::string copy = (side == kPlain ? "plain " : "spill ") + name;
    rocksdb::Status status;
    if (side == kSpill) {
      status = spill_->CreateCheckpoint(directory_.path(copy));
    } else {
      rocksdb::Checkpoint* made = nullptr;
      EXPECT_TRUE(rocksdb::Checkpoint::Create(databases_[side].get(), &made).ok());
      status = std::unique_ptr<rocksdb::Checkpoint>(made)->CreateCheckpoint(directory_.path(copy));
    }
    EXPECT_TRUE(status.ok()) << status.ToString();
    return status.ok() ? open_plain(copy, handles) : nullptr;
  }

 private:
  rocksdb::DBOptions options() const {
    rocksdb::DBOptions options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.env = env_.get();
    options.info_log_level = rocksdb::FATAL_LEVEL;
    options.max_background_jobs = 2;
    options.max_file_opening_threads = 1;
    return options;
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors() const {
    std::vector<rocksdb::ColumnFamilyDescriptor> all;
    for (const Family& family : families_) all.emplace_back(family.name, options_of(family));
    return all;
  }
  std::unique_ptr<rocksdb::DB> open_plain(const std::string& name, Handles* handles) {
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status =
        rocksdb::DB::Open(options(), directory_.path(name), descriptors(), handles, spill::DbOut(&db));
    EXPECT_TRUE(status.ok()) << status.ToString();
    return std::unique_ptr<rocksdb::DB>(db);
  }

  void open() {
    Both<Handles> handles;
    databases_[kPlain] = open_plain("plain", &handles[kPlain]);
    const rocksdb::Status status =
        DB::Open(options(), spill_options_, directory_.path("spill"), descriptors(), &handles[kSpill], &spill_);
    ASSERT_TRUE(status.ok()) << status.ToString();
    databases_[kSpill].reset(spill_);
    for (std::size_t i = 0; i < families_.size(); ++i) {
      families_[i].handles = {handles[kPlain][i], handles[kSpill][i]};
    }
  }

  void close() {
    if (spill_ != nullptr) diverted_ = diverted();
    for (const Side side : {kPlain, kSpill}) {
      if (databases_[side] == nullptr) continue;
      for (Family& family : families_) {
        EXPECT_TRUE(databases_[side]->DestroyColumnFamilyHandle(family.handles[side]).ok());
      }
      const rocksdb::Status status = databases_[side]->Close();
      EXPECT_TRUE(status.ok()) << status.ToString();
      databases_[side].reset();
    }
    spill_ = nullptr;
  }

  const TemporaryDirectory directory_;
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(std::make_shared<NoSyncFileSystem>());
  SpillOptions spill_options_;
  bool has_prefix_filters_ = false;
  std::atomic<std::uint64_t> paths_{0};
  std::vector<Family> families_;
  std::mutex open_mutex_;
  Both<std::unique_ptr<rocksdb::DB>> databases_;
  DB* spill_ = nullptr;
  std::uint64_t diverted_ = 0;
};

}  // namespace spillway::clients
