// A process that makes any of a database's calls, is killed right after one, and finds everything again.
//
// The operations are a function of the seed and of the operation's number, so every process knows what must be there:
// everything that was acknowledged, and the operation in progress completely or not at all. The process is this
// program, started again for the one test that is killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spill/compat/db_out.h"
#include "spill_files_of_two.h"
#include "spill_metamorphic.h"
#include "spill_two_databases.h"

extern char** environ;

namespace spillway::clients {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Status;

constexpr char kDirectory[] = "SPILLWAY_KILL_DIRECTORY";
constexpr char kSeed[] = "SPILLWAY_KILL_SEED";
constexpr char kLife[] = "SPILLWAY_KILL_LIFE";
constexpr char kImported[] = "imported";
constexpr char kMore[] = "more";

// Over all lives: how many operations began, and how many were acknowledged. In a file, which outlives a kill.
struct Progress {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> done{0};
};

class ProgressFile {
 public:
  explicit ProgressFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_GE(file, 0);
    EXPECT_EQ(ftruncate(file, sizeof(Progress)), 0);
    void* const mapped = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    close(file);
    progress_ = static_cast<Progress*>(mapped);  // a new file has zeros, which is a valid Progress
  }
  ~ProgressFile() { munmap(progress_, sizeof(Progress)); }
  ProgressFile(const ProgressFile&) = delete;
  ProgressFile& operator=(const ProgressFile&) = delete;
  Progress& operator*() const { return *progress_; }
  Progress* operator->() const { return progress_; }

 private:
  Progress* progress_;
};

using Rows = std::map<std::string, std::string>;
using Contents = std::map<std::string, Rows>;  // by family name

enum class What : std::uint8_t {
  put,
  remove,
  merge,
  remove_range,
  batch,
  sync_put,
  sync_nothing,
  sync_log,
  flush,
  compact,
  compact_imported,
  rollback,
  divert,
  divert_not,
  ingest,
  import,
  create,
  drop,
  checkpoint
};

struct Write {
  What what = What::put;  // put, remove, merge or remove_range
  std::string family;
  std::string key;
  std::string value;  // for a range deletion its end
};

struct Operation {
  What what = What::put;
  std::vector<Write> writes;  // one for a put and similar, several for a batch
  std::string family;
  std::map<std::string, std::string> rows;  // of an external file
  std::uint64_t writes_before = 0;          // for an import
};

std::string key_of(Random& random) {
  return std::string(1, "abcdef"[random.below(6)]) + std::to_string(random.below(4));
}

Write some_write(Random& random, std::uint64_t number, const Contents& contents) {
  auto family = contents.begin();
  std::advance(family, random.below(contents.size()));
  Write write{What::put, family->first, key_of(random), std::to_string(number)};
  const std::uint64_t what = random.below(10);
  if (what == 0) write.what = What::remove_range;
  if (what == 1 || what == 2) write.what = What::remove;
  if (what >= 7) write.what = What::merge;
  if (write.what == What::remove_range) {
    write.value = key_of(random);
    if (write.value < write.key) write.value.swap(write.key);
  } else if (random.one_in(10)) {
    write.value += std::string(2000, 'v');
  }
  return write;
}

// The operation of this number, with these contents.
Operation operation_of(std::uint64_t seed, std::uint64_t number, const Contents& contents) {
  Random random(seed * 1'000'003 + number);
  Operation operation;
  operation.what =
      random.one_in(2)
          ? What::batch
          : random.of<What>({What::sync_put, What::sync_nothing, What::sync_log, What::flush, What::compact,
                             What::compact_imported, What::compact_imported, What::compact_imported, What::rollback,
                             What::divert, What::divert_not, What::ingest, What::import, What::import, What::import,
                             What::create, What::drop, What::checkpoint});
  const auto fresh = [&](const char* name) {
    if (contents.contains(name)) operation.what = What::drop;
    operation.family = name;
  };
  if (operation.what == What::import) fresh(kImported);
  if (operation.what == What::create) fresh(kMore);
  if (operation.what == What::drop && operation.family.empty()) {
    operation.family = random.one_in(2) ? kImported : kMore;
    if (!contents.contains(operation.family)) operation.what = What::batch;
  }
  if (operation.what == What::ingest || operation.what == What::import) {
    for (std::uint64_t left = 1 + random.below(8); left > 0; --left) operation.rows[key_of(random)] = "file";
    operation.writes_before = random.below(5000);
  }
  if (operation.what == What::compact_imported && !contents.contains(kImported)) operation.what = What::batch;
  const std::uint64_t writes = operation.what == What::batch ? 1 + random.below(5) : operation.what == What::sync_put;
  for (std::uint64_t i = 0; i < writes; ++i) operation.writes.push_back(some_write(random, number * 10 + i, contents));
  return operation;
}

void carry_out(const Write& write, Contents& contents) {
  Rows& rows = contents[write.family];
  switch (write.what) {
    case What::put:
      rows[write.key] = write.value;
      break;
    case What::remove:
      rows.erase(write.key);
      break;
    case What::merge:
      if (std::string& value = rows[write.key]; value.empty()) {
        value = write.value;
      } else {
        value += "," + write.value;
      }
      break;
    default:
      rows.erase(rows.lower_bound(write.key), rows.lower_bound(write.value));
  }
}

void carry_out(const Operation& operation, Contents& contents) {
  for (const Write& write : operation.writes) carry_out(write, contents);
  if (operation.what == What::drop) contents.erase(operation.family);
  if (operation.what == What::create) contents[operation.family];
  if (operation.what == What::import) contents[operation.family] = operation.rows;
  if (operation.what == What::ingest) {
    for (const auto& [key, value] : operation.rows) contents[rocksdb::kDefaultColumnFamilyName][key] = value;
  }
}

Contents contents_after(std::uint64_t seed, std::uint64_t operations) {
  Contents contents{{rocksdb::kDefaultColumnFamilyName, {}}, {"other", {}}};
  for (std::uint64_t i = 0; i < operations; ++i) carry_out(operation_of(seed, i, contents), contents);
  return contents;
}

std::string shown(const Contents& contents) {
  std::string text;
  for (const auto& [family, rows] : contents) {
    text += "\n  " + family + ":";
    for (const auto& [key, value] : rows) text += " " + key + "=" + value.substr(0, 60);
  }
  return text;
}

class Life {
 public:
  Life(std::string directory, std::uint64_t seed, std::uint64_t life)
      : directory_(std::move(directory)),
        seed_(seed),
        progress_(directory_ + "/progress"),
        random_(seed * 7919 + life) {
    open();
  }
  ~Life() { close(); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  // Checks what the last life left: everything acknowledged, and its last operation completely or not at all.
  void judge() {
    const Contents found = contents_of(*db_, handles_);
    const Contents all = contents_after(seed_, progress_->begun);
    const Contents acknowledged = contents_after(seed_, progress_->done);
    if (found != all && found != acknowledged) {
      ADD_FAILURE() << "after operation " << progress_->done << " of " << progress_->begun << ": there is"
                    << shown(found) << "\nand should be" << shown(acknowledged) << "\nor" << shown(all);
    }
    if (found == all) progress_->done.store(progress_->begun);
    contents_ = found;
  }

  // Returns only if something is wrong.
  void go_on_until_killed() {
    What last = What::batch;
    for (int left = 60; !::testing::Test::HasFailure(); --left) {
      const std::uint64_t number = progress_->done;
      const Operation operation = operation_of(seed_, number, contents_);
      progress_->begun.store(number + 1);
      const Status status = run(operation);
      EXPECT_TRUE(status.ok()) << status.ToString() << " of operation " << number << " kind "
                               << static_cast<int>(operation.what);
      progress_->done.store(number + 1);
      if (operation.what != What::batch) last = operation.what;
      if (status.ok() && (left == 0 || random_.one_in(last == What::import ? 4 : 10))) {
        raise(SIGKILL);
      }
      carry_out(operation, contents_);
      if (operation.what == What::checkpoint) expect_checkpoint();
    }
  }

 private:
  static rocksdb::Options options() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.merge_operator = std::make_shared<Append>();
    options.info_log_level = rocksdb::FATAL_LEVEL;
    options.write_buffer_size = 64 << 10;
    options.level0_file_num_compaction_trigger = 2;
    options.compression = rocksdb::kNoCompression;
    return options;
  }

  SpillOptions spill_options() {
    SpillOptions options;
    options.generation_bytes = random_.of<std::uint64_t>({500, 10'000, 1'000'000});
    options.capacity_bytes = 100'000'000;
    options.put_back_bytes = random_.of<std::uint64_t>({0, 3'000, 100'000'000});
    options.rollback =
        random_.of<RollbackPolicy>({RollbackPolicy::adaptive, RollbackPolicy::eager, RollbackPolicy::off});
    options.poll_ms = 2;
    return options;
  }

  // The families that exist. The operation in progress may have changed them.
  std::vector<rocksdb::ColumnFamilyDescriptor> families() const {
    std::vector<std::string> names;
    const Status status = rocksdb::DB::ListColumnFamilies(options(), path(), &names);
    if (!status.ok()) names = {rocksdb::kDefaultColumnFamilyName, "other"};  // the database does not exist yet
    std::vector<rocksdb::ColumnFamilyDescriptor> all;
    for (const std::string& name : names) {
      if (name.rfind("spillway ", 0) != 0) all.emplace_back(name, options());
    }
    return all;
  }

  void open() {
    std::vector<ColumnFamilyHandle*> handles;
    const auto descriptors = families();
    const Status status = DB::Open(options(), spill_options(), path(), descriptors, &handles, &db_);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (ColumnFamilyHandle* handle : handles) handles_[handle->GetName()] = handle;
    db_->SetDiversion(Diversion::always);
  }

  void close() {
    if (db_ == nullptr) return;
    for (const auto& [name, handle] : handles_) EXPECT_TRUE(db_->DestroyColumnFamilyHandle(handle).ok());
    EXPECT_TRUE(db_->Close().ok());
    delete db_;
  }

  std::string path() const { return directory_ + "/db"; }
  std::string new_path() { return directory_ + "/" + std::to_string(getpid()) + " " + std::to_string(++paths_); }

  static Contents contents_of(rocksdb::DB& db, const std::map<std::string, ColumnFamilyHandle*>& handles) {
    Contents contents;
    for (const auto& [name, handle] : handles) {
      Rows& rows = contents[name];
      const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator({}, handle));
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
        rows[iterator->key().ToString()] = iterator->value().ToString();
      }
      EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
    }
    return contents;
  }

  Status write(const Operation& operation, bool sync) {
    rocksdb::WriteBatch batch;
    for (const Write& one : operation.writes) {
      ColumnFamilyHandle* const family = handles_.at(one.family);
      if (one.what == What::put) batch.Put(family, one.key, one.value);
      if (one.what == What::remove) batch.Delete(family, one.key);
      if (one.what == What::merge) batch.Merge(family, one.key, one.value);
      if (one.what == What::remove_range) batch.DeleteRange(family, one.key, one.value);
    }
    rocksdb::WriteOptions options;
    options.sync = sync;
    return db_->Write(options, &batch);
  }

  Status run(const Operation& operation) {
    switch (operation.what) {
      case What::sync_put:
      case What::sync_nothing:
        return write(operation, /*sync=*/true);
      case What::sync_log:
        return db_->SyncWAL();
      case What::flush:
        return db_->Flush({});
      case What::compact:
        return db_->CompactRange({}, nullptr, nullptr);
      case What::compact_imported:
        return db_->CompactRange({}, handles_.at(kImported), nullptr, nullptr);
      case What::rollback:
        return db_->Rollback();
      case What::divert:
      case What::divert_not:
        db_->SetDiversion(operation.what == What::divert ? Diversion::always : Diversion::never);
        return {};
      case What::checkpoint:
        checkpoint_ = new_path();
        return db_->CreateCheckpoint(checkpoint_);
      case What::ingest:
        return db_->IngestExternalFile({TableContents::write(options(), rows_of(operation), new_path())}, {});
      case What::import:
      case What::create:
      case What::drop:
        return change_families(operation);
      default:
        return write(operation, /*sync=*/false);
    }
  }

  static TableContents::Rows rows_of(const Operation& operation) {
    TableContents::Rows rows(TableContents::Order{rocksdb::BytewiseComparator()});
    for (const auto& [key, value] : operation.rows) rows[key] = value;
    return rows;
  }

  Status change_families(const Operation& operation) {
    if (operation.what == What::drop) {
      ColumnFamilyHandle* const handle = handles_.extract(operation.family).mapped();
      const Status status = db_->DropColumnFamily(handle);
      const Status destroyed = db_->DestroyColumnFamilyHandle(handle);
      return status.ok() ? destroyed : status;
    }
    ColumnFamilyHandle*& handle = handles_[operation.family];
    if (operation.what == What::create) return db_->CreateColumnFamily(options(), operation.family, &handle);
    const auto files = export_new(options(), rows_of(operation), operation.writes_before, new_path(), new_path());
    return db_->CreateColumnFamilyWithImport(options(), operation.family, {}, *files, &handle);
  }

  void expect_checkpoint() {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const auto& [name, rows] : contents_) descriptors.emplace_back(name, options());
    std::vector<ColumnFamilyHandle*> opened;
    rocksdb::DB* made = nullptr;
    const Status status = rocksdb::DB::Open(options(), checkpoint_, descriptors, &opened, spill::DbOut(&made));
    ASSERT_TRUE(status.ok()) << status.ToString();
    const std::unique_ptr<rocksdb::DB> copy(made);
    std::map<std::string, ColumnFamilyHandle*> handles;
    for (ColumnFamilyHandle* handle : opened) handles[handle->GetName()] = handle;
    const Contents found = contents_of(*copy, handles);
    EXPECT_TRUE(found == contents_) << "a checkpoint has" << shown(found) << "\nand should have" << shown(contents_);
    for (ColumnFamilyHandle* handle : opened) EXPECT_TRUE(copy->DestroyColumnFamilyHandle(handle).ok());
  }

  const std::string directory_;
  const std::uint64_t seed_;
  const ProgressFile progress_;
  Random random_;
  DB* db_ = nullptr;
  std::map<std::string, ColumnFamilyHandle*> handles_;
  Contents contents_;
  std::string checkpoint_;
  int paths_ = 0;
};

// Waits until it ends. Returns how it ended.
int start_again(const std::string& directory, std::uint64_t seed, int life) {
  std::vector<std::string> texts;
  for (char** one = environ; *one != nullptr; ++one) {
    // A test runner's shard settings are not for it.
    if (!std::string_view(*one).starts_with("GTEST_")) texts.emplace_back(*one);
  }
  texts.push_back(kDirectory + ("=" + directory));
  texts.push_back(kSeed + ("=" + std::to_string(seed)));
  texts.push_back(kLife + ("=" + std::to_string(life)));
  std::vector<char*> environment;
  for (std::string& text : texts) environment.push_back(text.data());
  environment.push_back(nullptr);
  std::string program = "/proc/self/exe";
  std::string filter = "--gtest_filter=SpillKilled.DISABLED_Client";
  std::string brief = "--gtest_brief=1";
  std::string disabled = "--gtest_also_run_disabled_tests";
  char* arguments[] = {program.data(), filter.data(), brief.data(), disabled.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environment.data()), 0);
  int how = 0;
  EXPECT_EQ(waitpid(child, &how, 0), child);
  return how;
}

void run(std::uint64_t seed, int lives) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const TemporaryDirectory directory(memory_path());
  for (int life = 0; life < lives; ++life) {
    const int how = start_again(directory.root(), seed, life);
    ASSERT_TRUE(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL) << "life " << life << " ended with " << how;
    for (const auto& file : std::filesystem::directory_iterator(directory.root())) {
      const std::string name = file.path().filename();
      if (name != "db" && name != "progress") std::filesystem::remove_all(file.path());
    }
  }
}

// Not a test: the client that the test below starts and kills.
TEST(SpillKilled, DISABLED_Client) {
  const char* const directory = std::getenv(kDirectory);
  if (directory == nullptr) GTEST_SKIP() << "SpillMetamorphic.WhatWasAcknowledgedOutlivesAKillAtOnce starts it";
  Life life(directory, number_of(kSeed), number_of(kLife));
  if (HasFailure()) return;
  life.judge();
  if (!HasFailure()) life.go_on_until_killed();
}

TEST(SpillMetamorphic, WhatWasAcknowledgedOutlivesAKillAtOnce) {
  for_each_seed({.from = 1, .count = 3, .steps = 8}, run);
}

}  // namespace
}  // namespace spillway::clients
