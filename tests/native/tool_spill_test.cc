// spill-show and spill-drain: what they report of a spill store, and the rollback without the program that filled it.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
#include "spill/compat/db_out.h"
#include "spill/main_db/binding.h"
#include "spill/store/region/region_store.h"
#include "spillway/db.h"
#include "temporary_directory.h"
#include "tool/spill/commands.h"
#include "tool_conversation.h"

namespace spillway::tool {
namespace {

namespace filesystem = std::filesystem;

class OnlyOurs final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice*, const rocksdb::Slice& operand, std::string* result,
             rocksdb::Logger*) const override {
    *result = operand.ToString();
    return true;
  }
  const char* Name() const override { return "OnlyOurs"; }
};

// Reverse order.
class OurOrder final : public rocksdb::Comparator {
 public:
  using Comparator::Compare;
  int Compare(const rocksdb::Slice& a, const rocksdb::Slice& b) const override { return b.compare(a); }
  const char* Name() const override { return "OurOrder"; }
  bool CanKeysWithDifferentByteContentsBeEqual() const override { return false; }
  void FindShortestSeparator(std::string*, const rocksdb::Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

class ToolSpill : public ::testing::Test {
 protected:
  ToolSpill() { options_.create_if_missing = true; }

  std::string path(const std::string& name) const { return directory_.path(name); }

  void open(const std::string& spill_path = "") {
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.path = spill_path;
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options_, spill, path("db"), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  // Two writes in RocksDB, and three in the spill store, one of them in another family.
  void fill() {
    ASSERT_TRUE(db_->Put({}, "a", "main").ok());
    ASSERT_TRUE(db_->Put({}, "b", "main").ok());
    rocksdb::ColumnFamilyHandle* other = nullptr;
    ASSERT_TRUE(db_->CreateColumnFamily(options_, "other", &other).ok());
    db_->SetDiversion(Diversion::always);
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.Put("a", "spilled").ok());
    ASSERT_TRUE(batch.Delete("b").ok());
    ASSERT_TRUE(db_->Write({}, &batch).ok());
    ASSERT_TRUE(db_->Put({}, other, "c", "spilled").ok());
    ASSERT_TRUE(db_->DestroyColumnFamilyHandle(other).ok());
  }
  void make_with_writes(const std::string& spill_path = "") {
    open(spill_path);
    fill();
    db_.reset();
  }
  Outcome perform(Command command, const Json& request) {
    return outcome_of([&](Events& events, const std::atomic<bool>& stop) { return command(request, events, stop); });
  }
  Json show(const Json& request) {
    const Outcome outcome = perform(spill_show, request);
    EXPECT_TRUE(outcome.status) << outcome.status.message();
    return outcome.status ? outcome.last() : Json();
  }
  void expect_refused(Command command, const Json& request, const std::string& because) {
    const Outcome outcome = perform(command, request);
    EXPECT_FALSE(outcome.status);
    EXPECT_NE(outcome.status.message().find(because), std::string::npos) << outcome.status.message();
  }
  // Read by plain RocksDB.
  std::string plain(const std::string& family, const std::string& key) {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options_, path("db"), {{"default", options_}, {"other", options_}},
                                                     &handles, spill::DbOut(&opened));
    if (!status.ok()) return status.ToString();
    std::string value;
    const rocksdb::Status got = opened->Get({}, handles[family == "other" ? 1 : 0], key, &value);
    for (auto* handle : handles) delete handle;
    delete opened;
    return got.ok() ? value : got.ToString();
  }
  std::string contents() {
    std::string all;
    for (const auto& entry : filesystem::recursive_directory_iterator(directory_.root())) {
      if (!entry.is_regular_file()) continue;
      all += entry.path().string() + file_bytes(entry.path());
    }
    return all;
  }
  std::string only_log(const std::string& directory) {
    for (const auto& entry : filesystem::directory_iterator(directory)) {
      if (entry.path().extension() == ".spill") return entry.path().string();
    }
    return "";
  }

  TemporaryDirectory directory_;
  rocksdb::Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(ToolSpill, ShowsTheContentsAndChangesNothing) {
  make_with_writes();
  const std::string before = contents();
  for (const Json& request : {Json{{"database", path("db")}}, Json{{"spill", path("db/spill")}},
                              Json{{"database", path("db")}, {"spill", path("db/spill")}}}) {
    const Json result = show(request);
    EXPECT_EQ(result["operations"], 3) << result.dump(1);
    EXPECT_EQ(result["bytes"], 17);
    EXPECT_EQ(result["generations"].size(), 1U);
    EXPECT_EQ(result["generations"][0]["file"], only_log(path("db/spill")));
    EXPECT_EQ(result["families"].size(), 2U);
    EXPECT_EQ(result["families"][0], Json({{"id", 0}, {"operations", 2}, {"bytes", 9}}));
    EXPECT_EQ(result["binding"]["database"], path("db"));
    EXPECT_EQ(result["damage"], Json::array());
    EXPECT_EQ(result["ends_at"], nullptr);
    const bool knows_database = request.contains("database");
    EXPECT_EQ(result["fits"], knows_database ? Json(true) : Json(nullptr));
    if (knows_database) {
      EXPECT_EQ(result["guard"]["id"], result["binding"]["id"]);
      EXPECT_EQ(result["guard"]["opening"], result["binding"]["opening"]);
    }
  }
  EXPECT_TRUE(contents() == before) << "something was changed";
}

TEST_F(ToolSpill, ShowsASpillStoreAtTheGuardsLocation) {
  make_with_writes(path("elsewhere"));
  const Json result = show({{"database", path("db")}});
  EXPECT_EQ(result["spill"], path("elsewhere"));
  EXPECT_EQ(result["operations"], 3);
}

TEST_F(ToolSpill, ShowsWhyTheTwoCannotBeOpened) {
  make_with_writes();
  filesystem::rename(path("db/spill"), path("aside"));
  Json result = show({{"database", path("db")}});
  EXPECT_EQ(result["exists"], false);
  EXPECT_EQ(result["fits"], false);
  EXPECT_NE(result["why_not"].get<std::string>().find("there is none of it"), std::string::npos);
  result = show({{"database", path("db")}, {"spill", path("aside")}});
  EXPECT_EQ(result["fits"], true);
}

TEST_F(ToolSpill, ShowsADatabaseThatHasNothing) {
  open();
  db_.reset();
  const Json result = show({{"database", path("db")}});
  EXPECT_EQ(result["operations"], 0);
  EXPECT_EQ(result["guard"], nullptr);
  EXPECT_EQ(result["binding"]["released"], true);
  EXPECT_EQ(result["fits"], true);
}

// Every byte of every log is changed in turn: durable records are reported as damaged, with the file; others end the
// log.
TEST_F(ToolSpill, ReportsThePlaceOfDamage) {
  open();
  db_->SetDiversion(Diversion::always);
  rocksdb::WriteOptions sync;
  sync.sync = true;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(db_->Put(sync, "key" + std::to_string(i), std::string(100, 'v')).ok());
  db_.reset();
  const std::string log = only_log(path("db/spill"));
  const auto bytes = filesystem::file_size(log);
  int told_as_damage = 0;
  for (std::uint64_t at = 0; at < bytes; ++at) {
    std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int whole = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(whole ^ 1));
    file.flush();
    const Outcome outcome = perform(spill_show, {{"database", path("db")}});
    if (outcome.status) {
      const Json& result = outcome.last();
      EXPECT_TRUE(!result["damage"].empty() || !result["ends_at"].is_null()) << "byte " << at;
      const Json& where = result["damage"].empty() ? result["ends_at"] : result["damage"][0];
      EXPECT_EQ(where["file"], log);
      EXPECT_LE(where["offset"].get<std::uint64_t>(), at);
      if (!result["damage"].empty()) ++told_as_damage;
    } else {
      EXPECT_NE(outcome.status.message().find("another version"), std::string::npos) << outcome.status.message();
    }
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(whole));
  }
  EXPECT_GT(told_as_damage, 500) << "of " << bytes;
  EXPECT_EQ(show({{"database", path("db")}})["ends_at"], nullptr);
}

TEST_F(ToolSpill, AfterACloseMissingRecordsAreReported) {
  open();
  db_->SetDiversion(Diversion::always);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(db_->Put({}, "key" + std::to_string(i), std::string(50, 'v')).ok());
  db_.reset();
  const std::string log = only_log(path("db/spill"));
  const std::string kept = path("kept");
  filesystem::copy_file(log, kept);
  EXPECT_EQ(show({{"database", path("db")}})["damage"], Json::array());
  for (std::uint64_t bytes = filesystem::file_size(log); bytes-- > 0;) {
    filesystem::resize_file(log, bytes);
    const Json result = show({{"database", path("db")}});
    ASSERT_EQ(result["damage"].size(), 1) << "of " << bytes << " bytes";
    EXPECT_EQ(result["damage"][0]["file"], log);
    EXPECT_LE(result["damage"][0]["offset"].get<std::uint64_t>(), bytes);
  }
  filesystem::remove(log);
  EXPECT_EQ(show({{"database", path("db")}})["damage"][0]["file"], log);
  filesystem::copy_file(kept, log);
  EXPECT_EQ(show({{"database", path("db")}})["damage"], Json::array());
}

// The record of how much of each log was durable has checksums as well. A torn end of it is not damage.
TEST_F(ToolSpill, TheRecordOfDurableEndsIsVerified) {
  open();
  db_->SetDiversion(Diversion::always);
  rocksdb::WriteOptions sync;
  sync.sync = true;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(db_->Put(sync, "key" + std::to_string(i), "v").ok());
  const std::string copy = path("copy");  // of a killed process: a close would rewrite the file
  filesystem::copy(path("db"), copy, filesystem::copy_options::recursive);
  db_.reset();
  const std::string ends = copy + "/spill/DURABLE";
  const auto bytes = filesystem::file_size(ends);
  constexpr std::uint64_t kEntry = 32;
  ASSERT_GT(bytes, 2 * kEntry);
  EXPECT_EQ(show({{"database", copy}, {"spill", copy + "/spill"}})["damage"], Json::array());
  for (std::uint64_t at = 0; at < bytes; ++at) {
    std::fstream file(ends, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const int whole = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(whole ^ 1));
    file.flush();
    const Json damage = show({{"database", copy}, {"spill", copy + "/spill"}})["damage"];
    EXPECT_EQ(damage.size(), at < bytes - kEntry ? 1 : 0) << "byte " << at;
    if (!damage.empty()) {
      EXPECT_EQ(damage[0]["file"], ends);
      EXPECT_LE(damage[0]["offset"].get<std::uint64_t>(), at);
    }
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(whole));
  }
}

TEST_F(ToolSpill, AStoreOfTheProgramsOwnIsRefusedByName) {
  SpillOptions spill;
  spill.rollback = RollbackPolicy::off;
  std::unique_ptr<spill::Store> store;
  ASSERT_TRUE(spill::open_region_store({rocksdb::FileSystem::Default(), path("own"), 1 << 20}, &store).ok());
  spill.store = std::move(store);
  DB* db = nullptr;
  ASSERT_TRUE(DB::Open(options_, spill, path("db"), &db).ok());
  db_.reset(db);
  fill();
  db_.reset();
  for (const Command command : {spill_show, spill_drain}) {
    expect_refused(command, {{"database", path("db")}}, "key-value namespace");
  }
  ASSERT_TRUE(perform(spill_drain, {{"database", path("db")}, {"abandon", true}}).status);
  EXPECT_EQ(plain("default", "a"), "main");
}

TEST_F(ToolSpill, ADamagedBindingRecordIsReported) {
  make_with_writes();
  filesystem::resize_file(path("db/spill/BINDING"), 10);
  const Json result = show({{"database", path("db")}});
  EXPECT_EQ(result["damage"][0]["file"], path("db/spill/BINDING"));
  EXPECT_EQ(result["operations"], 3);
}

TEST_F(ToolSpill, WhatIsNeitherIsRefused) {
  filesystem::create_directory(path("empty"));
  for (const Command command : {spill_show, spill_drain}) {
    expect_refused(command, Json::object(), "names neither a database nor a spill store");
    expect_refused(command, {{"database", path("empty")}}, "is no RocksDB database");
    expect_refused(command, {{"database", path("missing")}}, "is no RocksDB database");
    expect_refused(command, {{"spill", path("empty")}}, "is neither a RocksDB database nor a spill store");
    expect_refused(command, {{"database", 7}}, "database");
    expect_refused(command, {{"databse", path("empty")}}, "databse");
  }
  make_with_writes();
  expect_refused(spill_drain, {{"spill", path("db/spill")}}, "name that too");
}

TEST_F(ToolSpill, DrainLeavesAPlainDatabase) {
  for (const std::string& spill : {std::string(), path("elsewhere")}) {
    SCOPED_TRACE(spill);
    filesystem::remove_all(path("db"));
    make_with_writes(spill);
    EXPECT_NE(plain("default", "a").find("spillway guard"), std::string::npos);
    const Outcome outcome = perform(spill_drain, {{"database", path("db")}});
    ASSERT_TRUE(outcome.status) << outcome.status.message();
    EXPECT_EQ(outcome.last()["operations"], 3);
    EXPECT_EQ(outcome.last()["abandoned"], false);
    EXPECT_EQ(plain("default", "a"), "spilled");
    EXPECT_EQ(plain("default", "b"), "NotFound: ");
    EXPECT_EQ(plain("other", "c"), "spilled");
    // A second time there is nothing to do.
    const Outcome again = perform(spill_drain, {{"database", path("db")}});
    ASSERT_TRUE(again.status) << again.status.message();
    EXPECT_EQ(again.last()["operations"], 0);
  }
}

TEST_F(ToolSpill, DrainOfADatabaseThatNeverSawSpillwayDoesNothing) {
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options_, path("db"), spill::DbOut(&db)).ok());
  delete db;
  const std::string before = contents();
  EXPECT_TRUE(perform(spill_drain, {{"database", path("db")}}).status);
  EXPECT_TRUE(contents() == before);
}

TEST_F(ToolSpill, DrainRefusesWhatOnlyTheProgramCanOpen) {
  static const OurOrder order;
  for (const bool is_order : {true, false}) {
    filesystem::remove_all(path("db"));
    options_.comparator = is_order ? &order : rocksdb::BytewiseComparator();
    options_.merge_operator = is_order ? nullptr : std::make_shared<OnlyOurs>();
    make_with_writes();
    const std::string before = contents();
    for (const bool abandon : {false, true}) {
      expect_refused(spill_drain, {{"database", path("db")}, {"abandon", abandon}},
                     is_order ? "comparator OurOrder" : "merge operator OnlyOurs");
    }
    EXPECT_TRUE(contents() == before);

    // The program can discard it itself.
    filesystem::remove_all(path("db/spill"));
    const std::vector<rocksdb::ColumnFamilyDescriptor> families{{"default", options_}, {"other", options_}};
    ASSERT_TRUE(DB::AbandonSpilled(options_, path("db"), families).ok());
    EXPECT_EQ(plain("default", "a"), "main");
    EXPECT_EQ(plain("other", "c"), "NotFound: ");
    EXPECT_TRUE(DB::AbandonSpilled(options_, path("db"), families).IsInvalidArgument());
  }
}

TEST_F(ToolSpill, DrainOfTheWrongSpillStoreIsRefusedAndChangesNoData) {
  make_with_writes();
  filesystem::rename(path("db"), path("a"));
  make_with_writes();
  expect_refused(spill_drain, {{"database", path("a")}, {"spill", path("db/spill")}}, "belongs to the database");
  EXPECT_TRUE(perform(spill_drain, {{"database", path("a")}, {"spill", path("a/spill")}}).status);
  EXPECT_TRUE(perform(spill_drain, {{"database", path("db")}}).status);
  EXPECT_EQ(plain("default", "a"), "spilled");
}

// A copy of both, and one of the database alone: the guard's location is the original's.
TEST_F(ToolSpill, ACopyIsDrainedWithoutTheOriginal) {
  for (const bool abandons : {false, true}) {
    for (const bool has_own : {true, false}) {
      SCOPED_TRACE(std::string(abandons ? "abandon, " : "drain, ") + (has_own ? "both" : "without the spill store"));
      filesystem::remove_all(path("db"));
      filesystem::remove_all(path("db2"));
      open();
      db_->SetDiversion(Diversion::always);
      ASSERT_TRUE(db_->Put({}, "a", "spilled").ok());
      db_.reset();
      filesystem::copy(path("db"), path("db2"), filesystem::copy_options::recursive);
      if (!has_own) filesystem::remove_all(path("db2/spill"));
      EXPECT_EQ(show({{"database", path("db2")}})["spill"], path("db2/spill"));
      const Outcome outcome = perform(spill_drain, {{"database", path("db2")}, {"abandon", abandons}});
      EXPECT_EQ(static_cast<bool>(outcome.status), abandons || has_own) << outcome.status.message();
      options_.create_if_missing = false;
      open();
      ASSERT_NE(db_, nullptr);
      std::string value;
      EXPECT_TRUE(db_->Get({}, "a", &value).ok());
      EXPECT_EQ(value, "spilled");
      db_.reset();
      options_.create_if_missing = true;
    }
  }
}

TEST_F(ToolSpill, AbandonGivesUpWhatIsLostAndKeepsWhatIsThere) {
  enum class Store { there, missing, foreign, damaged };
  for (const Store store : {Store::there, Store::missing, Store::foreign, Store::damaged}) {
    SCOPED_TRACE(static_cast<int>(store));
    for (const auto& entry : filesystem::directory_iterator(directory_.root())) filesystem::remove_all(entry);
    make_with_writes();
    if (store == Store::missing) filesystem::remove_all(path("db/spill"));
    if (store == Store::damaged) filesystem::resize_file(path("db/spill/BINDING"), 10);
    if (store == Store::foreign) {
      filesystem::rename(path("db"), path("aside"));
      make_with_writes();
      filesystem::remove_all(path("aside/spill"));
      filesystem::rename(path("db/spill"), path("aside/spill"));
      filesystem::remove_all(path("db"));
      filesystem::rename(path("aside"), path("db"));
    }
    const Outcome outcome = perform(spill_drain, {{"database", path("db")}, {"abandon", true}});
    ASSERT_TRUE(outcome.status) << outcome.status.message();
    EXPECT_EQ(plain("default", "a"), "main");
    EXPECT_EQ(plain("default", "b"), "main");
    const Json& moved_to = outcome.last()["moved_to"];
    if (store == Store::there || store == Store::damaged) {
      EXPECT_FALSE(filesystem::exists(path("db/spill")));
      EXPECT_NE(only_log(moved_to), "") << "what was given up is kept";
    } else {
      EXPECT_EQ(moved_to, nullptr);
    }
    EXPECT_EQ(filesystem::exists(path("db/spill")), store == Store::foreign) << "another database's stays";
    expect_refused(spill_drain, {{"database", path("db")}, {"abandon", true}}, "has nothing in a spill store");
  }
}

}  // namespace
}  // namespace spillway::tool
