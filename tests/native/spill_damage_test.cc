// Bytes that change on the drive while the database is open, and while it is closed: each read returns the right
// answer, or an error that says where. It never returns a wrong answer.
#include "spill_damage.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <vector>

namespace spillway::clients {
namespace {

using rocksdb::Status;
using Model = std::map<std::string, std::string>;

class SpillDamage : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override {
    const Status status = database_.open();
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  DB& db() { return database_.db(); }
  // It reports damage, what is damaged and where.
  static void expect_told(const Status& status) {
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find("is damaged at byte "), std::string::npos) << status.ToString();
  }
  // Changes a byte of that value in the file of the store that contains it.
  void flip_in_value(const std::string& value, std::size_t at) {
    int found = 0;
    for (const std::string& file : database_.files()) {
      const std::size_t begins = find_in(file, value);
      if (begins == std::string::npos) continue;
      ++found;
      flip(file, begins + at, 0x10);
    }
    ASSERT_GT(found, 0);
  }

  TemporaryDirectory temporary_;
  SpilledDatabase database_{GetParam(), temporary_.path("damage")};
};

INSTANTIATE_TEST_SUITE_P(Kinds, SpillDamage, ::testing::Values(StoreKind::region, StoreKind::key_value),
                         [](const auto& kind) { return name_of(kind.param); });

// Values at the beginning of a record and after others, so that readers reach them in different ways.
TEST_P(SpillDamage, EveryReadOfAChangedValueReportsDamage) {
  const std::string first(1000, 'f');
  const std::string middle(3000, 'm');
  const std::string small = "a small value at the very end";
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("a", first).ok());
  ASSERT_TRUE(batch.Put("b", middle).ok());
  ASSERT_TRUE(batch.Put("c", small).ok());
  ASSERT_TRUE(db().Write({}, &batch).ok());
  ASSERT_TRUE(db().Put({}, "d", "alone, and as it was").ok());
  ASSERT_TRUE(db().SyncWAL().ok());
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"a", first}, {"b", middle}, {"c", small}}) {
    SCOPED_TRACE(key);
    flip_in_value(value, value.size() / 2);
    std::string got;
    expect_told(db().Get({}, key, &got));
    std::vector<std::string> values;
    const std::vector<Status> statuses = db().MultiGet({}, {"d", key}, &values);
    EXPECT_EQ(values[0], "alone, and as it was");
    expect_told(statuses[1]);
    for (const bool forward : {true, false}) {
      const std::unique_ptr<rocksdb::Iterator> all(db().NewIterator({}));
      forward ? all->SeekToFirst() : all->SeekToLast();
      while (all->Valid()) {
        EXPECT_NE(all->key().ToString(), key);
        forward ? all->Next() : all->Prev();
      }
      expect_told(all->status());
    }
    std::string damaged = value;
    damaged[value.size() / 2] ^= 0x10;
    flip_in_value(damaged, value.size() / 2);
    EXPECT_TRUE(db().Get({}, key, &got).ok());
    EXPECT_EQ(got, value);
  }
}

// --- Bytes at random

// SPILLWAY_FLIPS: how many bytes are changed, for both kinds of store together (`make flips`: 10,000).
std::uint64_t flips_asked_for() {
  const char* const asked = std::getenv("SPILLWAY_FLIPS");
  return asked != nullptr ? std::stoull(asked) : 240;
}

// The effects of the changed bytes. Printed, so that a run shows that both occurred.
using Outcomes = std::map<std::string, std::uint64_t>;

class SpillFlips : public ::testing::TestWithParam<StoreKind> {
 protected:
  struct Flip {
    std::string file;
    std::uint64_t offset = 0;
    std::uint8_t bits = 1;
  };

  // Picks a file of the store and a byte of it: mostly a written one, because mapped files are large and empty.
  Flip pick(const SpilledDatabase& database) {
    const std::vector<std::string> files = database.files();
    EXPECT_FALSE(files.empty());
    for (;;) {
      Flip flip{files[random_() % files.size()], 0, static_cast<std::uint8_t>(1U << random_() % 8)};
      if (random_() % 8 == 0) flip.bits = static_cast<std::uint8_t>(1 + random_() % 255);
      const std::uint64_t bytes = std::filesystem::file_size(flip.file);
      const std::uint64_t range = random_() % 4 == 0 ? std::min<std::uint64_t>(bytes, 4096) : bytes;
      for (int tries = 0; range > 0 && tries < 20'000; ++tries) {
        flip.offset = random_() % range;
        if (random_() % 1024 == 0 || is_written(flip)) return flip;
      }
    }
  }

  // The answer is right, or an error that says where.
  std::string judge(const Status& status, const std::string& key, const std::string& value, const Model& model) {
    const auto known = model.find(key);
    if (status.ok()) {
      EXPECT_TRUE(known != model.end() && known->second == value) << "a wrong value of " << key;
      return "right";
    }
    if (status.IsNotFound()) {
      EXPECT_TRUE(known == model.end()) << key << " is missing";
      return "right";
    }
    return told(status);
  }
  std::string told(const Status& status) {
    const std::string text = status.ToString();
    const bool has_file = text.find("/store/") != std::string::npos;
    EXPECT_TRUE(has_file || (GetParam() == StoreKind::key_value && text.find("namespace") != std::string::npos))
        << text;
    EXPECT_TRUE(std::regex_search(text, std::regex("byte [0-9]+"))) << text;
    return "told";
  }

  // Reads everything in every way. "right" if all answers are.
  std::string read_all(SpilledDatabase& database) {
    bool all_right = true;
    const auto note = [&](const std::string& outcome) { all_right = all_right && outcome == "right"; };
    std::vector<std::string> keys;
    for (int i = 0; i < 60; ++i) keys.push_back("key" + std::to_string(i));
    for (const std::string& key : keys) {
      std::string value;
      note(judge(database.db().Get({}, key, &value), key, value, database.model));
    }
    std::vector<std::string> values;
    const std::vector<Status> statuses =
        database.db().MultiGet({}, std::vector<rocksdb::Slice>(keys.begin(), keys.end()), &values);
    for (std::size_t i = 0; i < keys.size(); ++i) note(judge(statuses[i], keys[i], values[i], database.model));
    for (const bool forward : {true, false}) note(walk(database, forward));
    return all_right ? "right" : "told";
  }

  std::string walk(SpilledDatabase& database, bool forward) {
    const std::unique_ptr<rocksdb::Iterator> all(database.db().NewIterator({}));
    Model seen;
    for (forward ? all->SeekToFirst() : all->SeekToLast(); all->Valid(); forward ? all->Next() : all->Prev()) {
      const std::string key = all->key().ToString();
      (void)judge(all->status(), key, all->value().ToString(), database.model);
      seen[key] = all->value().ToString();
    }
    if (!all->status().ok()) return told(all->status());
    EXPECT_TRUE(seen == database.model) << "keys are missing";
    return "right";
  }

  void count(const std::string& how, const std::string& outcome) { ++outcomes_[how + ": " + outcome]; }
  void print() const {
    for (const auto& [outcome, times] : outcomes_) {
      std::cout << name_of(GetParam()) << ", " << outcome << " " << times << " times\n";
    }
  }

  std::mt19937_64 random_{GetParam() == StoreKind::region ? 1U : 2U};
  TemporaryDirectory temporary_;
  Outcomes outcomes_;

 private:
  static bool is_written(const Flip& flip) {
    const int descriptor = ::open(flip.file.c_str(), O_RDONLY | O_CLOEXEC);
    char around[32] = {};
    const std::uint64_t from = flip.offset - std::min<std::uint64_t>(flip.offset, 16);
    const ssize_t got = pread(descriptor, around, sizeof around, static_cast<off_t>(from));
    ::close(descriptor);
    return got > 0 && std::any_of(std::begin(around), std::end(around), [](char one) { return one != 0; });
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, SpillFlips, ::testing::Values(StoreKind::region, StoreKind::key_value),
                         [](const auto& kind) { return name_of(kind.param); });

// Of five bytes per kind of store, three are changed while the database is open, and changed back when all was read.
TEST_P(SpillFlips, ReadByAnOpenDatabase) {
  const std::uint64_t flips = flips_asked_for() * 3 / 10;
  SpilledDatabase database(GetParam(), temporary_.path("live"));
  ASSERT_TRUE(database.open().ok());
  database.fill(1);
  for (std::uint64_t i = 0; i < flips && !HasFailure(); ++i) {
    const Flip one = pick(database);
    SCOPED_TRACE(one.file + " at " + std::to_string(one.offset));
    flip(one.file, one.offset, one.bits);
    const std::string outcome = read_all(database);
    const Status verified = database.db().VerifyChecksum();
    if (!verified.ok()) (void)told(verified);
    EXPECT_TRUE(outcome == "right" || !verified.ok()) << "VerifyChecksum missed what a read came upon";
    count("open, read", outcome);
    count("open, VerifyChecksum", verified.ok() ? "right" : "told");
    flip(one.file, one.offset, one.bits);
  }
  EXPECT_EQ(read_all(database), "right");
  print();
}

// One is changed before everything is brought back.
TEST_P(SpillFlips, BroughtBack) {
  const std::uint64_t flips = flips_asked_for() / 10;
  for (std::uint64_t i = 0; i < flips && !HasFailure(); ++i) {
    const std::string directory = temporary_.path("back" + std::to_string(i));
    {
      SpilledDatabase database(GetParam(), directory);
      database.put_back_bytes = i % 2 == 0 ? 0 : std::uint64_t{1} << 30;
      ASSERT_TRUE(database.open().ok());
      database.fill(i);
      const Flip one = pick(database);
      SCOPED_TRACE(one.file + " at " + std::to_string(one.offset));
      flip(one.file, one.offset, one.bits);
      const Status status = database.db().Rollback();
      if (!status.ok()) (void)told(status);
      const std::string outcome = read_all(database);
      EXPECT_TRUE(!status.ok() || outcome == "right");
      EXPECT_TRUE(database.db().VerifyChecksum().ok() || !status.ok());
      count(database.put_back_bytes > 0 ? "put back" : "ingested", status.ok() ? "right" : "told");
    }
    std::filesystem::remove_all(directory);
  }
  print();
}

// One is changed between a close and an opening.
TEST_P(SpillFlips, FoundWhenItIsOpenedAgain) {
  const std::uint64_t flips = flips_asked_for() / 10;
  const std::string filled = temporary_.path("filled");
  Model model;
  {
    SpilledDatabase database(GetParam(), filled);
    ASSERT_TRUE(database.open().ok());
    database.fill(7);
    model = database.model;
  }
  for (std::uint64_t i = 0; i < flips && !HasFailure(); ++i) {
    const std::string directory = temporary_.path("again" + std::to_string(i));
    std::filesystem::copy(filled, directory, std::filesystem::copy_options::recursive);
    {
      SpilledDatabase database(GetParam(), directory);
      database.model = model;
      const Flip one = pick(database);
      SCOPED_TRACE(one.file + " at " + std::to_string(one.offset));
      flip(one.file, one.offset, one.bits);
      const Status status = database.open();
      count("opened", status.ok() ? read_all(database) : told(status));
    }
    std::filesystem::remove_all(directory);
  }
  print();
}

}  // namespace
}  // namespace spillway::clients
