// A spill store is opened only with its own database, and plain RocksDB does not open a database that may have writes
// in a spill store.
#include <gtest/gtest.h>
#include <rocksdb/utilities/backup_engine.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/options_util.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/steps.h"
#include "device/emulated/emulated.h"
#include "device_small_drive.h"
#include "spill/compat/db_out.h"
#include "spill/main_db/binding.h"
#include "spill/store/binding_record.h"
#include "spill/store/checksum.h"
#include "spill/store/kv/kv_store.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {
namespace {

using rocksdb::ReadOptions;
using rocksdb::Status;
using rocksdb::WriteOptions;
using spill::BindingRecord;
using spill::Guard;
using spill::Pairing;

constexpr char kId[] = "0123456789abcdef0123456789abcdef";
constexpr char kOtherId[] = "ffffffffffffffff0123456789abcdef";

Guard guard_of(std::uint64_t number, std::uint64_t nonce = 7, const char* id = kId) {
  return {.id = id, .opening = {number, nonce}, .location = "/data/a/spill"};
}

TEST(SpillBinding, AGuardsNameContainsAllItsFields) {
  for (const char* location : {"/data/a/spill", "", ": writes may lie in the spill store ; open with", "relative"}) {
    Guard guard = guard_of(12, 0xfedcba9876543210);
    guard.location = location;
    const std::string name = name_of(guard);
    EXPECT_TRUE(spill::is_guard(name));
    const auto parsed = spill::parse_guard(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(parsed->id, guard.id);
    EXPECT_EQ(parsed->opening, guard.opening);
    EXPECT_EQ(parsed->location, guard.location);
  }
}

TEST(SpillBinding, WhatIsNoGuardOfThisVersionIsNotParsed) {
  const std::string name = name_of(guard_of(12));
  for (const std::string& other : {std::string("default"), std::string("spillway"), std::string("spillway guard "),
                                   std::string("spillway guard x"), name.substr(0, name.size() - 1), name + "."}) {
    EXPECT_FALSE(spill::parse_guard(other)) << other;
  }
  EXPECT_FALSE(spill::is_guard("spillway"));
  EXPECT_TRUE(spill::is_guard("spillway guard of another version"));
}

TEST(SpillBinding, TheNewestGuardIsThatOfTheLastOpening) {
  EXPECT_FALSE(spill::newest_guard({"default", "other"}));
  const std::vector<std::string> families{"default", name_of(guard_of(9)), name_of(guard_of(10)), name_of(guard_of(8))};
  EXPECT_EQ(spill::newest_guard(families)->opening.number, 10U);
}

BindingRecord some_record() {
  BindingRecord record;
  record.id = kId;
  record.confirmed = {11, 0xffffffffffffffff};
  record.pending = {12, 1};
  record.is_released = true;
  record.identity = "an identity";
  record.database = "/data/a b";
  return record;
}

TEST(SpillBinding, ARecordIsReadAsItWasWritten) {
  const BindingRecord record = some_record();
  const auto read = spill::decode_binding(encode(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, record.id);
  EXPECT_EQ(read->confirmed, record.confirmed);
  EXPECT_EQ(read->pending, record.pending);
  EXPECT_EQ(read->is_released, record.is_released);
  EXPECT_EQ(read->identity, record.identity);
  EXPECT_EQ(read->database, record.database);
}

TEST(SpillBinding, ARecordThatIsDamagedAnywhereIsNone) {
  const std::string whole = encode(some_record());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(spill::decode_binding(damaged)) << "byte " << i << " bit " << bit;
    }
    EXPECT_FALSE(spill::decode_binding(whole.substr(0, i))) << i << " bytes";
  }
  EXPECT_FALSE(spill::decode_binding(whole + "x"));
}

// As a later version would write it: the first line and the checksum have the same form.
std::string record_of_another_version() {
  std::string text = encode(some_record());
  text.replace(text.find("binding 1"), 9, "binding 2\nnew field");
  text.resize(text.rfind("crc32c "));
  std::string checksum;
  for (const char byte : spill::checksum_of({rocksdb::Slice(text)})) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    checksum += digits.data();
  }
  return text + "crc32c " + checksum + "\n";
}

TEST(SpillBinding, ARecordOfAnotherVersionIsNotTakenForADamagedOne) {
  const std::string other = record_of_another_version();
  EXPECT_FALSE(spill::decode_binding(other));
  EXPECT_TRUE(spill::is_binding_of_another_version(other));
  EXPECT_FALSE(spill::is_binding_of_another_version(other.substr(0, other.size() - 2))) << "it is damaged";
  EXPECT_FALSE(spill::is_binding_of_another_version(encode(some_record())));
  EXPECT_FALSE(spill::is_binding_of_another_version(""));
}

// A database whose guard is of one opening, and a store of another confirmed one, perhaps with a pending one.
Pairing pairing_of(std::optional<Guard> guard, std::optional<BindingRecord> record, bool has_writes) {
  Pairing pairing;
  pairing.database = "/data/a";
  pairing.identity = "A";
  pairing.location = "/data/a/spill";
  pairing.guard = std::move(guard);
  pairing.record = std::move(record);
  pairing.has_writes = has_writes;
  return pairing;
}

BindingRecord record_of(std::uint64_t confirmed, std::uint64_t pending, const char* id = kId) {
  BindingRecord record;
  record.id = id;
  record.confirmed = {confirmed, 7};
  record.pending = {pending, 7};
  record.identity = "A";
  record.database = "/data/a";
  return record;
}

TEST(SpillBinding, MatchingPairsAreOpened) {
  const auto ok = [](const Pairing& pairing) { return check_pairing(pairing).ToString(); };
  for (const bool has_writes : {false, true}) {
    EXPECT_EQ(ok(pairing_of(guard_of(4), record_of(4, 4), has_writes)), "OK");
    EXPECT_EQ(ok(pairing_of(guard_of(4), record_of(4, 5), has_writes)), "OK") << "the next guard was not made";
    EXPECT_EQ(ok(pairing_of(guard_of(5), record_of(4, 5), has_writes)), "OK") << "the next guard was made";
  }
  EXPECT_EQ(ok(pairing_of({}, {}, false)), "OK") << "both are new";
  EXPECT_EQ(ok(pairing_of({}, record_of(4, 5), false)), "OK") << "nothing was spilled when it was closed";
  Pairing moved = pairing_of({}, record_of(4, 4), false);
  moved.database = "/elsewhere";
  EXPECT_EQ(ok(moved), "OK") << "the same database at another path";
  Pairing taken_over = pairing_of({}, record_of(4, 4), false);
  taken_over.database = "/elsewhere";
  taken_over.identity = "B";
  taken_over.record->is_released = true;
  EXPECT_EQ(ok(taken_over), "OK") << "another database may take what was closed with nothing in it";
}

TEST(SpillBinding, OtherPairsAreRefusedWithAReason) {
  const auto refuses = [](const Pairing& pairing, const char* because) {
    const Status status = check_pairing(pairing);
    EXPECT_TRUE(status.IsInvalidArgument()) << because << ": " << status.ToString();
    EXPECT_NE(status.ToString().find(because), std::string::npos) << status.ToString();
    EXPECT_NE(status.ToString().find("/data/a/spill"), std::string::npos) << status.ToString();
  };
  for (const bool has_writes : {false, true}) {
    refuses(pairing_of(guard_of(4), {}, has_writes), "there is none of it");
    refuses(pairing_of(guard_of(4), record_of(4, 4, kOtherId), has_writes), "belongs to the database");
    refuses(pairing_of(guard_of(3), record_of(4, 5), has_writes), "older copy");
    refuses(pairing_of(guard_of(6), record_of(4, 5), has_writes), "newer than the copy");
    refuses(pairing_of(guard_of(4, 8), record_of(4, 5), has_writes), "opened apart");
  }
  refuses(pairing_of({}, record_of(4, 5), true), "knows nothing of them");
  refuses(pairing_of({}, {}, true), "knows nothing of them");
  Pairing in_use = pairing_of({}, record_of(4, 4), false);
  in_use.database = "/data/b";
  in_use.identity = "B";
  refuses(in_use, "was not closed");
}

// --- Databases

// Copies a directory as a killed process would leave it at a step.
class CopyAt final : public steps::Watcher {
 public:
  CopyAt(std::string step, std::filesystem::path from, std::filesystem::path to)
      : step_(std::move(step)), from_(std::move(from)), to_(std::move(to)) {
    steps::watch(this);
  }
  ~CopyAt() override { steps::watch(nullptr); }
  void reached(std::string_view step) override {
    if (step != step_ || std::exchange(done_, true)) return;
    std::filesystem::copy(from_, to_, std::filesystem::copy_options::recursive);
  }
  bool done() const { return done_; }

 private:
  const std::string step_;
  const std::filesystem::path from_;
  const std::filesystem::path to_;
  bool done_ = false;
};

class SpillBindingDb : public ::testing::Test {
 protected:
  SpillBindingDb() {
    options_.create_if_missing = true;
    options_.info_log_level = rocksdb::FATAL_LEVEL;
    spill_.rollback = RollbackPolicy::off;
  }

  std::string path(const std::string& name) const { return directory_.path(name); }

  Status open(const std::string& name, const std::string& spill_path = "") {
    db_.reset();
    spill_.path = spill_path;
    DB* db = nullptr;
    const Status status = DB::Open(options_, spill_, path(name), &db);
    db_.reset(db);
    return status;
  }
  void must_open(const std::string& name, const std::string& spill_path = "") {
    const Status status = open(name, spill_path);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void divert(const std::string& key, const std::string& value) {
    db_->SetDiversion(Diversion::always);
    const Status status = db_->Put(WriteOptions(), key, value);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_GT(db_->GetSpillStatistics().live_entries, 0U);
  }
  // Leaves one diverted write in the spill store.
  void make_with_writes(const std::string& name, const std::string& spill_path = "") {
    must_open(name, spill_path);
    ASSERT_TRUE(db_->Put(WriteOptions(), "in", "main").ok());
    divert("key", name);
    db_.reset();
  }
  std::string get(const std::string& key) {
    std::string value;
    const Status status = db_->Get(ReadOptions(), key, &value);
    return status.ok() ? value : status.IsNotFound() ? "-" : status.ToString();
  }
  Status open_plain(const std::string& name) {
    rocksdb::DB* db = nullptr;
    const Status status = rocksdb::DB::Open(options_, path(name), spill::DbOut(&db));
    delete db;
    return status;
  }
  void copy(const std::string& from, const std::string& to) {
    std::filesystem::remove_all(path(to));
    std::filesystem::copy(path(from), path(to), std::filesystem::copy_options::recursive);
  }
  void expect_refused(const Status& status, const std::string& because) {
    EXPECT_EQ(db_, nullptr);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_NE(status.ToString().find(because), std::string::npos) << status.ToString();
  }
  std::vector<std::string> families_of(const std::string& name) {
    std::vector<std::string> families;
    EXPECT_TRUE(rocksdb::DB::ListColumnFamilies(options_, path(name), &families).ok());
    return families;
  }

  TemporaryDirectory directory_;
  rocksdb::Options options_;
  std::shared_ptr<device::EmulatedDevice> drive_;  // must outlive the store on it
  SpillOptions spill_;
  std::unique_ptr<DB> db_;
};

TEST_F(SpillBindingDb, PlainRocksdbIsRefusedWhileSomethingIsSpilled) {
  make_with_writes("db");
  const Status status = open_plain("db");
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("open with spillway::DB"), std::string::npos) << status.ToString();
  EXPECT_NE(status.ToString().find(path("db/spill")), std::string::npos) << "says where: " << status.ToString();
  must_open("db");
  EXPECT_EQ(get("key"), "db");
  ASSERT_TRUE(db_->Rollback().ok());
  db_.reset();
  EXPECT_EQ(families_of("db"), std::vector<std::string>{"default"});
  EXPECT_TRUE(open_plain("db").ok());
}

TEST_F(SpillBindingDb, PlainRocksdbIsRefusedThoughItOpensEveryFamily) {
  make_with_writes("db");
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : families_of("db")) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  ASSERT_EQ(families.size(), 2U);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  Status status = rocksdb::DB::Open(options_, path("db"), families, &handles, spill::DbOut(&db));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.ToString().find("open the database with spillway::DB"), std::string::npos) << status.ToString();
  // With the families of the OPTIONS file, as RocksDB's tools open it.
  rocksdb::DBOptions options;
  families.clear();
  status = rocksdb::LoadLatestOptions({}, path("db"), &options, &families);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_FALSE(rocksdb::DB::Open(options, path("db"), families, &handles, spill::DbOut(&db)).ok());
}

TEST_F(SpillBindingDb, PlainRocksdbIsRefusedAfterAKill) {
  must_open("db");
  copy("db", "killed");
  EXPECT_TRUE(open_plain("killed").IsInvalidArgument()) << "something may be spilled at any moment";
  must_open("killed");
  db_.reset();
  EXPECT_TRUE(open_plain("killed").ok());
}

TEST_F(SpillBindingDb, AUserNeedNotNameTheGuardButMay) {
  make_with_writes("db");
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : families_of("db")) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  DB* db = nullptr;
  Status status = DB::Open(options_, spill_, path("db"), families, &handles, &db);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_EQ(handles.size(), 2U) << "one for each that was named";
  EXPECT_FALSE(db->Put(WriteOptions(), handles[1], "key", "value").ok());
  for (auto* handle : handles) EXPECT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
  delete db;
  handles.clear();
  status = DB::Open(options_, spill_, path("db"), families, &handles, &db);
  EXPECT_TRUE(status.IsInvalidArgument()) << "that guard is gone: " << status.ToString();
  must_open("db");
  EXPECT_EQ(get("key"), "db");
}

TEST_F(SpillBindingDb, ANewDatabaseDoesNotFindTheOldOnesWrites) {
  make_with_writes("db");
  ASSERT_TRUE(rocksdb::DestroyDB(path("db"), options_).ok());
  ASSERT_TRUE(std::filesystem::exists(path("db/spill"))) << "RocksDB knows nothing of it";
  expect_refused(open("db"), "move " + path("db/spill") + " away");
  EXPECT_FALSE(std::filesystem::exists(path("db/CURRENT"))) << "a refusal makes no database";
  std::filesystem::remove_all(path("db/spill"));
  must_open("db");
  EXPECT_EQ(get("key"), "-");
}

TEST_F(SpillBindingDb, AnOlderCopyOfTheDatabaseIsRefused) {
  make_with_writes("db");
  copy("db", "copy");
  make_with_writes("db");
  std::filesystem::remove_all(path("copy/spill"));
  std::filesystem::rename(path("db/spill"), path("copy/spill"));
  expect_refused(open("copy"), "is an older copy than its spill store");
}

TEST_F(SpillBindingDb, AnOlderCopyOfTheSpillStoreIsRefused) {
  make_with_writes("db");
  copy("db/spill", "copy");
  make_with_writes("db");
  std::filesystem::remove_all(path("db/spill"));
  std::filesystem::rename(path("copy"), path("db/spill"));
  expect_refused(open("db"), "is newer than the copy of its spill store");
}

// Also if everything was brought back in between, and the guard was dropped.
TEST_F(SpillBindingDb, AnOlderCopyIsDistinguishedFromAnotherDatabase) {
  for (const bool of_store : {false, true}) {
    SCOPED_TRACE(of_store);
    make_with_writes("db");
    copy("db", "copy");
    must_open("db");
    ASSERT_TRUE(db_->Rollback().ok());
    ASSERT_TRUE(db_->Close().ok());
    make_with_writes("db");
    const std::string kept = of_store ? "db" : "copy";
    const std::string other = of_store ? "copy" : "db";
    std::filesystem::remove_all(path(kept + "/spill"));
    std::filesystem::rename(path(other + "/spill"), path(kept + "/spill"));
    expect_refused(open(kept), "restore both as they were at one moment");
    for (const char* name : {"db", "copy"}) std::filesystem::remove_all(path(name));
  }
}

TEST_F(SpillBindingDb, CopiesThatWereOpenedApartAreRefused) {
  make_with_writes("db");
  copy("db", "copy");
  make_with_writes("db");
  make_with_writes("copy");
  std::filesystem::remove_all(path("db/spill"));
  std::filesystem::rename(path("copy/spill"), path("db/spill"));
  expect_refused(open("db"), "was opened apart from");
}

TEST_F(SpillBindingDb, ACopyOfBothIsADatabaseOfItsOwn) {
  make_with_writes("db");
  copy("db", "copy");
  for (const char* name : {"db", "copy"}) {
    must_open(name);
    EXPECT_EQ(get("key"), "db");
    divert("key", name);
  }
  must_open("db");
  EXPECT_EQ(get("key"), "db");
  must_open("copy");
  EXPECT_EQ(get("key"), "copy");
}

TEST_F(SpillBindingDb, ABackupWithTheNewerSpillStoreIsRefused) {
  must_open("db");
  divert("key", "before");
  ASSERT_TRUE(db_->CreateCheckpoint(path("by_us")).ok());
  rocksdb::Checkpoint* made = nullptr;
  ASSERT_TRUE(rocksdb::Checkpoint::Create(db_.get(), &made).ok());
  ASSERT_TRUE(std::unique_ptr<rocksdb::Checkpoint>(made)->CreateCheckpoint(path("by_rocksdb")).ok());
  rocksdb::BackupEngine* opened = nullptr;
  ASSERT_TRUE(
      rocksdb::BackupEngine::Open(rocksdb::Env::Default(), rocksdb::BackupEngineOptions(path("backups")), &opened)
          .ok());
  const std::unique_ptr<rocksdb::BackupEngine> backups(opened);
  ASSERT_TRUE(backups->CreateNewBackup(db_.get()).ok());
  divert("key", "after");
  EXPECT_TRUE(open_plain("db").IsIOError()) << "it is locked";
  db_.reset();
  EXPECT_TRUE(open_plain("db").IsInvalidArgument()) << "the guard is back";
  ASSERT_TRUE(backups->RestoreDBFromLatestBackup(path("restored"), path("restored")).ok());
  for (const char* name : {"by_us", "by_rocksdb", "restored"}) {
    SCOPED_TRACE(name);
    EXPECT_EQ(families_of(name), std::vector<std::string>{"default"});
    EXPECT_TRUE(open_plain(name).ok());
    copy("db/spill", std::string(name) + "/spill");
    expect_refused(open(name), "may be new or restored from a copy");
    std::filesystem::remove_all(path(name) + "/spill");
    must_open(name);
    EXPECT_EQ(get("key"), "before");
  }
  must_open("db");
  EXPECT_EQ(get("key"), "after");
}

TEST_F(SpillBindingDb, AnotherDatabaseDoesNotTakeTheSpillStore) {
  for (const bool has_writes : {false, true}) {
    SCOPED_TRACE(has_writes);
    const std::string suffix = has_writes ? "1" : "0";
    const std::string spill = path("spill" + suffix);
    must_open("a" + suffix, spill);
    if (has_writes) divert("key", "a");
    copy("a" + suffix, "killed" + suffix);  // as if the process of A were killed here
    copy("spill" + suffix, "spill_of_killed" + suffix);
    const std::string killed_spill = path("spill_of_killed" + suffix);
    db_.reset();
    expect_refused(open("b" + suffix, killed_spill), has_writes ? "knows nothing of them" : "was not closed");
    EXPECT_FALSE(std::filesystem::exists(path("b" + suffix)));
    must_open("killed" + suffix, killed_spill);
    EXPECT_EQ(get("key"), has_writes ? "a" : "-");
  }
}

TEST_F(SpillBindingDb, TwoDatabasesWithWritesDoNotSwapSpillStores) {
  make_with_writes("a", path("spill_a"));
  make_with_writes("b", path("spill_b"));
  expect_refused(open("a", path("spill_b")), "belongs to the database " + path("b"));
  expect_refused(open("b", path("spill_a")), "whose spill store was " + path("spill_b"));
  must_open("a", path("spill_a"));
  EXPECT_EQ(get("key"), "a");
}

TEST_F(SpillBindingDb, AnotherPathThanThatOfTheWritesIsRefused) {
  make_with_writes("db", path("elsewhere"));
  expect_refused(open("db"), path("elsewhere"));
  expect_refused(open("db", path("missing")), path("elsewhere"));
  EXPECT_FALSE(std::filesystem::exists(path("missing"))) << "a refusal makes no directory";
  std::filesystem::create_directory(path("empty"));
  expect_refused(open("db", path("empty")), path("elsewhere"));
  must_open("db", path("elsewhere"));
  EXPECT_EQ(get("key"), "db");
}

TEST_F(SpillBindingDb, AMissingSpillDirectoryIsRefused) {
  make_with_writes("db");
  std::filesystem::rename(path("db/spill"), path("db/aside"));
  expect_refused(open("db"), "--abandon " + path("db"));
  EXPECT_FALSE(std::filesystem::exists(path("db/spill")));
  std::filesystem::rename(path("db/aside"), path("db/spill"));
  must_open("db");
  EXPECT_EQ(get("key"), "db");
}

TEST_F(SpillBindingDb, ADamagedRecordIsReportedWhileSomethingIsSpilled) {
  make_with_writes("db");
  std::filesystem::resize_file(path("db/spill/BINDING"), 20);
  const Status status = open("db");
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
}

TEST_F(SpillBindingDb, ASpillStoreOfAnotherVersionIsRefusedByNameAndNotChanged) {
  make_with_writes("db");
  const std::string record = record_of_another_version();
  std::ofstream(path("db/spill/BINDING"), std::ios::binary) << record;
  const Status status = open("db");
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.ToString().find("was last opened by another version of Spillway"), std::string::npos);
  EXPECT_EQ(status.ToString().find("--abandon"), std::string::npos) << "its writes are not lost";
  std::ifstream file(path("db/spill/BINDING"), std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), record);
}

// A guard that this version cannot read: a later version's, which may have another record.
TEST_F(SpillBindingDb, ADatabaseWithTheGuardOfAnotherVersionIsRefused) {
  {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, path("db"), spill::DbOut(&db)).ok());
    const std::unique_ptr<rocksdb::DB> plain(db);
    rocksdb::ColumnFamilyHandle* guard = nullptr;
    ASSERT_TRUE(plain->CreateColumnFamily({}, "spillway guard 2 of a later version", &guard).ok());
    ASSERT_TRUE(plain->DestroyColumnFamilyHandle(guard).ok());
  }
  const Status status = open("db");
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
  EXPECT_NE(status.ToString().find("was last opened by another version of Spillway"), std::string::npos);
}

TEST_F(SpillBindingDb, ACrashAtAnyPointOfAnOpeningFits) {
  for (const bool is_new : {true, false}) {
    for (const char* step :
         {"spill.bind.pending", "spill.bind.created", "spill.bind.dropped", "spill.bind.confirmed"}) {
      SCOPED_TRACE(std::string(step) + (is_new ? " of a new database" : ""));
      for (const char* name : {"db", "killed", "twice"}) std::filesystem::remove_all(path(name));
      if (!is_new) make_with_writes("db");
      {
        const CopyAt killer(step, path("db"), path("killed"));
        must_open("db");
        ASSERT_TRUE(killer.done());
        db_.reset();
      }
      {
        const CopyAt killer(step, path("killed"), path("twice"));
        must_open("killed");
        EXPECT_EQ(get("key"), is_new ? "-" : "db");
        ASSERT_TRUE(killer.done());
        db_.reset();
      }
      must_open("twice");
      EXPECT_EQ(get("key"), is_new ? "-" : "db");
      divert("key", "more");
      db_.reset();
      EXPECT_TRUE(open_plain("twice").IsInvalidArgument());
      must_open("twice");
      EXPECT_EQ(get("key"), "more");
      ASSERT_TRUE(db_->Rollback().ok());
      db_.reset();
      EXPECT_TRUE(open_plain("twice").ok()) << "no guard of an interrupted opening stays";
    }
  }
}

TEST_F(SpillBindingDb, ACrashWhileABackupIsTakenOrTheDatabaseIsClosedFits) {
  for (const char* step : {"spill.bind.unguarded", "spill.bind.pending", "spill.bind.created", "spill.bind.released"}) {
    SCOPED_TRACE(step);
    for (const char* name : {"db", "killed", "checkpoint"}) std::filesystem::remove_all(path(name));
    must_open("db");
    divert("key", "db");
    {
      const CopyAt killer(step, path("db"), path("killed"));
      rocksdb::Checkpoint* made = nullptr;
      ASSERT_TRUE(rocksdb::Checkpoint::Create(db_.get(), &made).ok());
      const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
      ASSERT_TRUE(checkpoint->CreateCheckpoint(path("checkpoint")).ok());
      db_.reset();
      ASSERT_TRUE(killer.done());
    }
    must_open("killed");
    EXPECT_EQ(get("key"), "db");
    divert("key", "more");
    must_open("killed");
    EXPECT_EQ(get("key"), "more");
  }
}

// They would open RocksDB without the contents of the spill store.
TEST_F(SpillBindingDb, TheOtherWaysToOpenAreRefusedWhileSomethingMayBeSpilled) {
  const std::vector<rocksdb::ColumnFamilyDescriptor> families{{"default", rocksdb::ColumnFamilyOptions(options_)}};
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  using Way = std::function<Status()>;
  const std::vector<std::pair<std::string, Way>> ways{
      {"OpenForReadOnly", [&] { return DB::OpenForReadOnly(options_, path("db"), &opened); }},
      {"OpenForReadOnly", [&] { return DB::OpenForReadOnly(options_, path("db"), families, &handles, &opened); }},
      {"OpenAsSecondary", [&] { return DB::OpenAsSecondary(options_, path("db"), path("second"), &opened); }},
      {"OpenAsSecondary",
       [&] { return DB::OpenAsSecondary(options_, path("db"), path("second"), families, &handles, &opened); }},
      {"OpenAndTrimHistory",
       [&] { return DB::OpenAndTrimHistory(options_, path("db"), families, &handles, &opened, ""); }},
  };
  const auto all_refuse = [&] {
    for (const auto& [name, way] : ways) {
      const Status status = way();
      EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
      EXPECT_NE(status.ToString().find(name), std::string::npos) << status.ToString();
      EXPECT_EQ(opened, nullptr);
    }
  };
  make_with_writes("db");
  all_refuse();
  must_open("db");
  ASSERT_TRUE(db_->Rollback().ok());
  all_refuse();  // writes may be diverted at any time
  db_.reset();
  options_.max_open_files = -1;  // required by a secondary
  for (const auto& [name, way] : ways) {
    const Status status = way();
    // RocksDB trims only families with timestamps.
    EXPECT_TRUE(status.ok() || (name == "OpenAndTrimHistory" && status.IsInvalidArgument())) << status.ToString();
    for (auto* handle : handles) delete handle;
    handles.clear();
    delete std::exchange(opened, nullptr);
  }
}

TEST_F(SpillBindingDb, AGuardIsNotListedAndCannotBeCreatedByAUser) {
  make_with_writes("db");
  EXPECT_EQ(families_of("db").size(), 2U);
  std::vector<std::string> families;
  ASSERT_TRUE(DB::ListColumnFamilies(options_, path("db"), &families).ok());
  EXPECT_EQ(families, std::vector<std::string>{"default"});
  must_open("db");
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const Status status = db_->CreateColumnFamily({}, name_of(guard_of(99)), &handle);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
}

// A drive's key-value namespace, whose contents are a file.
TEST_F(SpillBindingDb, AStoreOfTheProgramsOwnIsBoundToo) {
  ssd::SsdConfig config = device::small_drive();
  config.namespaces.kv_share = 0.25;
  config.namespaces.memtable_bytes = 256 << 10;
  const auto open_on = [&](const std::string& name, const std::string& contents) {
    db_.reset();
    spill_.store.reset();  // must be destroyed before its drive
    drive_ = device::make_simulated(ssd::Ssd(config, 1));
    std::unique_ptr<spill::Store> store;
    const Status opened = spill::open_kv_store({drive_.get(), 0, path(contents), nullptr}, &store);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    spill_.store = std::move(store);
    return open(name);
  };
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(open_on(name, std::string(name) + ".kv").ok());
    divert("key", name);
  }
  expect_refused(open_on("a", "b.kv"), "belongs to the database " + path("b"));
  expect_refused(open_on("a", "empty.kv"), "there is none of it");
  expect_refused(open_on("new", "a.kv"), "knows nothing of them");
  spill_.store.reset();
  expect_refused(open("a"), "a store of the program's own");
  EXPECT_TRUE(open_plain("a").IsInvalidArgument());
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(open_on(name, std::string(name) + ".kv").ok());
    EXPECT_EQ(get("key"), name);
  }
  db_.reset();
  spill_.store.reset();
}

}  // namespace
}  // namespace spillway::clients
