// A spill store in which one file is of another version of Spillway: refused by name, and no file is changed.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>

#include "spill/store/checksum.h"
#include "spill/store/region/region_view.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

class SpillOtherVersions : public testing::Test {
 protected:
  SpillOtherVersions() {
    options_.create_if_missing = true;
    options_.info_log_level = rocksdb::FATAL_LEVEL;
    spill_.rollback = RollbackPolicy::off;
    spill_.generation_bytes = 64 << 10;
    fill();
  }

  // Several logs.
  void fill() {
    std::unique_ptr<DB> db;
    ASSERT_TRUE(open(&db).ok());
    db->SetDiversion(Diversion::always);
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(db->Put({}, "key" + std::to_string(i), std::string(1000, 'v')).ok());
    }
    db.reset();
  }

  rocksdb::Status open(std::unique_ptr<DB>* db) {
    DB* opened = nullptr;
    const rocksdb::Status status = DB::Open(options_, spill_, directory_.path("db"), &opened);
    db->reset(opened);
    return status;
  }

  // By name and contents.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path("db"))) {
      if (entry.is_regular_file()) all[entry.path()] = read_all(entry.path());
    }
    return all;
  }

  std::filesystem::path last_log() const {
    std::filesystem::path last;
    for (const auto& [path, bytes] : files()) {
      if (path.ends_with(".spill")) last = path;
    }
    return last;
  }

  rocksdb::Status opened_without_a_change() {
    const auto before = files();
    std::unique_ptr<DB> db;
    const rocksdb::Status status = open(&db);
    db.reset();
    EXPECT_TRUE(before == files()) << status.ToString();
    return status;
  }
  rocksdb::Status viewed() const {
    spill::RegionView view;
    return spill::view_region(*rocksdb::FileSystem::Default(), directory_.path("db/spill"), &view);
  }
  void expect_refused() {
    // What a killed process may leave of a log that was dropped, and the next opening removes.
    write_all(directory_.path("db/spill/000001.dropped"), "");
    for (const rocksdb::Status& status : {opened_without_a_change(), viewed()}) {
      EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
      EXPECT_NE(status.ToString().find("by another version of Spillway"), std::string::npos) << status.ToString();
    }
  }
  // The version alone is another one, and the checksum does not fit: that may be damage.
  void expect_doubted() {
    const rocksdb::Status status = opened_without_a_change();
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find("by another version of Spillway"), std::string::npos) << status.ToString();
    EXPECT_EQ(status.ToString().find("lose"), std::string::npos) << "its writes are not lost";
    EXPECT_EQ(status.ToString().find("--abandon"), std::string::npos) << "its writes are not lost";
  }

  const TemporaryDirectory directory_;
  rocksdb::Options options_;
  SpillOptions spill_;
};

TEST_F(SpillOtherVersions, OfALogIsRefused) {
  std::string log = read_all(last_log());
  ASSERT_EQ(log[7], 3);
  log[7] = 4;
  write_all(last_log(), log);
  expect_doubted();
  constexpr std::size_t kUnderChecksum = 48;
  log.replace(kUnderChecksum, 4, spill::checksum_of({rocksdb::Slice(log.data(), kUnderChecksum)}));
  write_all(last_log(), log);
  expect_refused();
}

TEST_F(SpillOtherVersions, OfTheRecordOfDurableEndsIsRefused) {
  const std::string path = directory_.path("db/spill/DURABLE");
  std::string ends = read_all(path);
  ASSERT_EQ(ends[8], 1);
  ends[8] = 2;
  constexpr std::size_t kHeader = 24;
  constexpr std::size_t kChecksum = 12;
  ends.replace(kChecksum, 4, 4, '\0');
  const std::uint32_t checksum = spill::crc32c(rocksdb::Slice(ends.data(), kHeader));
  for (std::size_t i = 0; i < 4; ++i) ends[kChecksum + i] = static_cast<char>(checksum >> (8 * i));
  write_all(path, ends);
  expect_refused();
}

TEST_F(SpillOtherVersions, OfTheBindingRecordIsRefused) {
  const std::string path = directory_.path("db/spill/BINDING");
  std::string record = read_all(path);
  record.replace(record.find("binding 1"), 9, "binding 2");
  write_all(path, record);
  expect_doubted();
  record.resize(record.rfind("crc32c "));
  std::string digits;
  for (const char byte : spill::checksum_of({rocksdb::Slice(record)})) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    digits += {kDigits[value >> 4U], kDigits[value & 0xfU]};
  }
  write_all(path, record + "crc32c " + digits + "\n");
  expect_refused();
}

}  // namespace
}  // namespace spillway
