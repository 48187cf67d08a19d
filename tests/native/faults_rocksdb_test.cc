// The fault layer below plain RocksDB: what a loss of power leaves, and which operations fail.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <set>
#include <string>

#include "base/file_bytes.h"
#include "faults/file_system.h"
#include "faults/power_loss.h"
#include "spill/compat/db_out.h"
#include "temporary_directory.h"

namespace spillway::faults {
namespace {

using rocksdb::IOStatus;

std::shared_ptr<FaultyFileSystem> open_file_system(const std::string& root) {
  auto opened = FaultyFileSystem::open(root);
  EXPECT_TRUE(opened) << opened.status().message();
  return opened ? *opened : nullptr;
}

// A file system, and files written directly.
class Faults : public ::testing::Test {
 protected:
  std::unique_ptr<rocksdb::FSWritableFile> create(const std::string& name) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(system_->NewWritableFile(root_ + "/" + name, {}, &file, nullptr).ok());
    return file;
  }
  static void append(rocksdb::FSWritableFile& file, const std::string& bytes) {
    EXPECT_TRUE(file.Append(bytes, {}, nullptr).ok());
  }
  static void sync(rocksdb::FSWritableFile& file) { EXPECT_TRUE(file.Sync({}, nullptr).ok()); }
  void sync_root() {
    std::unique_ptr<rocksdb::FSDirectory> directory;
    ASSERT_TRUE(system_->NewDirectory(root_, {}, &directory, nullptr).ok());
    ASSERT_TRUE(directory->Fsync({}, nullptr).ok());
  }
  // A directory with one possible state of the drive.
  std::string after_loss(std::uint64_t seed, bool in_order = false) {
    const std::string to = scratch_.path("after-" + std::to_string(seed));
    const Status status = power_loss(root_, to, {.seed = seed, .in_order = in_order});
    EXPECT_TRUE(status) << status.message();
    return to;
  }

  TemporaryDirectory scratch_{memory_path()};
  const std::string root_ = scratch_.path("root");
  std::shared_ptr<FaultyFileSystem> system_ = open_file_system(root_);
};

TEST_F(Faults, ASyncedFileOfASyncedDirectoryIsKeptWhateverTheSeed) {
  auto file = create("kept");
  append(*file, std::string(1000, 'a'));
  sync(*file);
  sync_root();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(file_bytes(after_loss(seed) + "/kept"), std::string(1000, 'a'));
  }
}

// A kernel's fsync promises nothing for what is written while it runs.
TEST_F(Faults, ASyncCoversWhatWasWrittenBeforeItBegan) {
  auto file = create("log");
  append(*file, std::string(1000, 's'));
  system_->set_fault_rule([&](const FileOperation& operation) {
    if (operation.action == Action::sync) append(*file, std::string(1000, 'u'));
    return FileFault();
  });
  sync(*file);
  system_->set_fault_rule(nullptr);
  sync_root();
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::string left = file_bytes(after_loss(seed) + "/log");
    EXPECT_EQ(left.substr(0, 1000), std::string(1000, 's'));
    sizes.insert(left.size());
  }
  EXPECT_TRUE(sizes.contains(1000));
  EXPECT_TRUE(sizes.contains(2000));
}

TEST_F(Faults, UnsyncedBytesAreLostKeptInPartAndTorn) {
  auto file = create("log");
  append(*file, std::string(100, 's'));
  sync(*file);
  sync_root();
  for (int i = 0; i < 8; ++i) append(*file, std::string(300, 'u'));
  std::set<std::size_t> sizes;
  bool torn = false;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::string left = file_bytes(after_loss(seed) + "/log");
    ASSERT_GE(left.size(), 100);
    ASSERT_LE(left.size(), 2500);
    EXPECT_EQ(left.substr(0, 100), std::string(100, 's'));
    const std::size_t wrong = left.find_first_not_of('u', 100);
    if (wrong != std::string::npos) {
      torn = true;
      EXPECT_LE(left.size() - wrong, kSectorBytes);
    }
    sizes.insert(left.size());
  }
  EXPECT_TRUE(torn);
  EXPECT_TRUE(sizes.contains(100));
  EXPECT_TRUE(sizes.contains(2500));
  EXPECT_GT(sizes.size(), 5);
}

TEST_F(Faults, OverwrittenAndTruncatedBytesComeBack) {
  auto log = create("old");
  append(*log, std::string(2000, 'o'));
  sync(*log);
  sync_root();
  ASSERT_TRUE(log->Truncate(500, {}, nullptr).ok());
  std::unique_ptr<rocksdb::FSWritableFile> reused;  // renamed, and overwritten from its beginning
  ASSERT_TRUE(system_->ReuseWritableFile(root_ + "/new", root_ + "/old", {}, &reused, nullptr).ok());
  append(*reused, std::string(100, 'n'));
  bool first = false;
  bool last = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string at = after_loss(seed);
    ASSERT_NE(std::filesystem::exists(at + "/old"), std::filesystem::exists(at + "/new"));
    const bool renamed = std::filesystem::exists(at + "/new");
    const std::string left = file_bytes(at + (renamed ? "/new" : "/old"));
    first |= !renamed && left == std::string(2000, 'o');
    last |= renamed && left == std::string(100, 'n') + std::string(400, 'o');
  }
  EXPECT_TRUE(first);
  EXPECT_TRUE(last);
}

TEST_F(Faults, NamesAreUndoneUntilTheirDirectoryIsSynced) {
  {
    auto current = create("CURRENT");
    append(*current, "old");
    sync(*current);
  }
  {
    auto current = create("CURRENT.tmp");
    append(*current, "new");
    sync(*current);
  }
  auto first = create("FIRST");
  sync(*first);
  sync_root();
  ASSERT_TRUE(system_->RenameFile(root_ + "/CURRENT.tmp", root_ + "/CURRENT", {}, nullptr).ok());
  ASSERT_TRUE(system_->DeleteFile(root_ + "/FIRST", {}, nullptr).ok());
  std::set<std::pair<bool, bool>> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string at = after_loss(seed);
    const bool renamed = !std::filesystem::exists(at + "/CURRENT.tmp");
    EXPECT_EQ(file_bytes(at + "/CURRENT"), renamed ? "new" : "old");
    seen.emplace(renamed, !std::filesystem::exists(at + "/FIRST"));
  }
  // As with a file system's journal: neither, the first, or both; never only the second.
  EXPECT_EQ(seen, (std::set<std::pair<bool, bool>>{{false, false}, {true, false}, {true, true}}));
  sync_root();
  EXPECT_EQ(file_bytes(after_loss(99) + "/CURRENT"), "new");
}

// As RocksDB creates a checkpoint: under another name, renamed, and the directory synced under its new name.
TEST_F(Faults, ADirectoryThatIsRenamedKeepsWhatIsInIt) {
  ASSERT_TRUE(system_->CreateDir(root_ + "/copy.tmp", {}, nullptr).ok());
  {
    auto file = create("copy.tmp/FILE");
    append(*file, "kept");
    sync(*file);
  }
  ASSERT_TRUE(system_->RenameFile(root_ + "/copy.tmp", root_ + "/copy", {}, nullptr).ok());
  std::set<bool> renamed;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string at = after_loss(seed);
    const bool is_renamed = std::filesystem::exists(at + "/copy/FILE");
    EXPECT_EQ(file_bytes(at + (is_renamed ? "/copy" : "/copy.tmp") + "/FILE"), "kept");
    renamed.insert(is_renamed);
  }
  EXPECT_EQ(renamed, (std::set<bool>{false, true}));
  std::unique_ptr<rocksdb::FSDirectory> directory;
  ASSERT_TRUE(system_->NewDirectory(root_ + "/copy", {}, &directory, nullptr).ok());
  ASSERT_TRUE(directory->Fsync({}, nullptr).ok());
  for (std::uint64_t seed = 100; seed < 110; ++seed) EXPECT_EQ(file_bytes(after_loss(seed) + "/copy/FILE"), "kept");
}

TEST_F(Faults, InOrderNoLaterWriteOutlivesAnEarlierOne) {
  auto one = create("one");
  auto two = create("two");
  sync_root();
  append(*one, std::string(700, '1'));
  append(*two, std::string(700, '2'));
  bool any_later = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string at = after_loss(seed, true);
    EXPECT_TRUE(file_bytes(at + "/two").empty() || file_bytes(at + "/one").size() == 700);
    const std::string any = after_loss(1000 + seed);
    any_later |= !file_bytes(any + "/two").empty() && file_bytes(any + "/one").empty();
  }
  EXPECT_TRUE(any_later);
}

TEST_F(Faults, TheJournalContinuesAfterAKilledProcess) {
  auto file = create("log");
  append(*file, "synced");
  sync(*file);
  sync_root();
  // The last action of a killed process may be missing in the journal.
  std::filesystem::rename(root_ + "/log", root_ + "/renamed");
  std::ofstream(scratch_.path("root.drive") + "/journal", std::ios::app) << "torn";
  system_ = open_file_system(root_);
  ASSERT_TRUE(system_);
  sync_root();
  EXPECT_EQ(file_bytes(after_loss(1) + "/renamed"), "synced");
}

TEST_F(Faults, RulesFailWhatTheyChoose) {
  auto file = create("log");
  system_->set_fault_rule(fail_nth([](const FileOperation& operation) { return operation.action == Action::sync; }, 2,
                                   IOStatus::IOError("no")));
  sync(*file);
  EXPECT_TRUE(file->Sync({}, nullptr).IsIOError());
  sync(*file);

  system_->set_fault_rule([](const FileOperation& operation) {
    return operation.action == Action::write ? FileFault{.status = IOStatus::IOError("torn"), .written_first = 3}
                                             : FileFault();
  });
  EXPECT_TRUE(file->Append("abcdef", {}, nullptr).IsIOError());
  EXPECT_EQ(file_bytes(root_ + "/log"), "abc");

  system_->set_fault_rule(full_beyond(10));
  append(*file, "defghij");
  EXPECT_TRUE(file->Append("k", {}, nullptr).IsNoSpace());

  int failed = 0;
  system_->set_fault_rule(fail_share([](const FileOperation& operation) { return operation.action == Action::sync; },
                                     0.3, 1, IOStatus::IOError("")));
  for (int i = 0; i < 1000; ++i) failed += file->Sync({}, nullptr).ok() ? 0 : 1;
  EXPECT_NEAR(failed, 300, 60);

  system_->set_fault_rule({});
  system_->cut_power();
  EXPECT_TRUE(file->Append("l", {}, nullptr).IsIOError());
  EXPECT_EQ(file_bytes(root_ + "/log"), "abcdefghij");
}

// Writes numbered keys, of which one in `sync_every` is synced, and cuts the power.
struct Written {
  int synced = -1;
  int last = -1;
};
Written write_numbers(const std::string& root, int count, int sync_every) {
  auto system = open_file_system(root);
  const auto env = rocksdb::NewCompositeEnv(system);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env.get();
  options.max_background_jobs = 1;
  rocksdb::DB* opened = nullptr;
  EXPECT_TRUE(rocksdb::DB::Open(options, root + "/db", spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  Written written;
  for (int i = 0; i < count; ++i) {
    rocksdb::WriteOptions write;
    write.sync = i % sync_every == sync_every - 1;
    EXPECT_TRUE(db->Put(write, std::to_string(i), std::string(100, 'v')).ok());
    if (write.sync) written.synced = i;
    written.last = i;
  }
  system->cut_power();
  return written;
}

TEST(FaultsBeneathRocksdb, SyncedWritesAndAPrefixOfTheOthersSurviveALossOfPower) {
  const TemporaryDirectory scratch(memory_path());
  const std::string root = scratch.path("root");
  const Written written = write_numbers(root, 90, 40);
  std::set<int> ends;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const std::string to = scratch.path("after-" + std::to_string(seed));
    ASSERT_TRUE(power_loss(root, to, {.seed = seed}));
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(rocksdb::Options(), to + "/db", spill::DbOut(&opened));
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.ToString();
    const std::unique_ptr<rocksdb::DB> db(opened);
    int survivors = 0;
    std::string value;
    while (db->Get({}, std::to_string(survivors), &value).ok()) ++survivors;
    EXPECT_GT(survivors, written.synced);
    for (int i = survivors; i <= written.last; ++i) {
      EXPECT_TRUE(db->Get({}, std::to_string(i), &value).IsNotFound()) << i << " of seed " << seed;
    }
    ends.insert(survivors);
  }
  EXPECT_GT(ends.size(), 2);  // so unsynced writes were lost, and not always the same ones
}

// While it exists, flushes are held, so nothing that they flush is in a table.
class HeldFlushes final : public rocksdb::EventListener {
 public:
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { released_.get_future().wait(); }
  void release() { released_.set_value(); }

 private:
  std::promise<void> released_;
};

// Writes "first" into one log of RocksDB and "second" into the next, and cuts the power.
void write_into_two_logs(const std::string& root) {
  auto system = open_file_system(root);
  const auto env = rocksdb::NewCompositeEnv(system);
  const auto flushes = std::make_shared<HeldFlushes>();
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env.get();
  options.listeners.push_back(flushes);
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, root + "/db", spill::DbOut(&opened)).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  ASSERT_TRUE(db->Put({}, "first", "1").ok());
  rocksdb::FlushOptions flush;
  flush.wait = false;
  flush.allow_write_stall = true;
  ASSERT_TRUE(db->Flush(flush).ok());
  ASSERT_TRUE(db->Put({}, "second", "2").ok());
  system->cut_power();
  flushes->release();
}

// In how many of 60 losses of power the later write is there and the earlier one is not.
int count_holes(const TemporaryDirectory& scratch, const std::string& root, bool holes_between_logs) {
  int holes = 0;
  int second = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::string to = scratch.path((holes_between_logs ? "any-" : "after-") + std::to_string(seed));
    EXPECT_TRUE(power_loss(root, to, {.seed = seed, .holes_between_logs = holes_between_logs}));
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(rocksdb::Options(), to + "/db", spill::DbOut(&opened));
    EXPECT_TRUE(status.ok()) << "seed " << seed << ": " << status.ToString();
    if (!status.ok()) continue;
    const std::unique_ptr<rocksdb::DB> db(opened);
    std::string value;
    if (!db->Get({}, "second", &value).ok()) continue;
    ++second;
    if (db->Get({}, "first", &value).IsNotFound()) ++holes;
  }
  EXPECT_GT(second, 0);
  return holes;
}

// If the first of these fails, a newer RocksDB detects the hole itself, and losses of power need not order its logs.
TEST(FaultsBeneathRocksdb, ALaterLogIsReplayedThoughOneBeforeItHasLostItsEnd) {
  const TemporaryDirectory scratch(memory_path());
  const std::string root = scratch.path("root");
  write_into_two_logs(root);
  EXPECT_GT(count_holes(scratch, root, true), 0);
  EXPECT_EQ(count_holes(scratch, root, false), 0);
}

}  // namespace
}  // namespace spillway::faults
