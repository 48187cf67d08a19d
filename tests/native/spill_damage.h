// A database whose writes are all in a spill store of either kind, on real files whose bytes a test can change, and a
// model of its contents.
#pragma once

#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device_small_drive.h"
#include "flipped_bytes.h"
#include "spill/store/kv/kv_store.h"
#include "spillway/db.h"
#include "temporary_directory.h"

namespace spillway::clients {

enum class StoreKind : std::uint8_t { region, key_value };

inline std::string name_of(StoreKind kind) { return kind == StoreKind::region ? "Region" : "KeyValue"; }

class SpilledDatabase {
 public:
  explicit SpilledDatabase(StoreKind kind, std::string directory) : kind_(kind), directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_ + "/store");
  }
  ~SpilledDatabase() { close(); }
  SpilledDatabase(const SpilledDatabase&) = delete;
  SpilledDatabase& operator=(const SpilledDatabase&) = delete;

  rocksdb::Status open() {
    close();
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 1 << 20;
    options.keep_log_file_num = 1;
    options.compression = rocksdb::kNoCompression;
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.put_back_bytes = put_back_bytes;
    spill.generation_bytes = std::uint64_t{16} << 10;
    spill.poll_ms = 50;
    spill.path = directory_ + "/store";
    if (kind_ == StoreKind::key_value) {
      ssd::SsdConfig config = device::small_drive();
      config.namespaces.kv_share = 0.25;
      config.namespaces.memtable_bytes = 256 * 1024;
      drive_ = device::make_simulated(ssd::Ssd(config, 1));
      std::unique_ptr<spill::Store> store;
      const rocksdb::Status opened =
          spill::open_kv_store({drive_.get(), 0, directory_ + "/store/kv", nullptr, kStagedPairs}, &store);
      if (!opened.ok()) return opened;
      spill.store = std::move(store);
    }
    DB* db = nullptr;
    const rocksdb::Status status = DB::Open(options, spill, directory_ + "/db", &db);
    db_.reset(db);
    if (status.ok()) db_->SetDiversion(Diversion::always);
    return status;
  }
  void close() {
    db_.reset();
    drive_.reset();
  }
  DB& db() { return *db_; }

  // Small and large batches of small and large values, some of them far from the beginning of their record, in several
  // generations. Some are overwritten, some deleted. All of it is durable afterwards.
  void fill(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int batch = 0; batch < 24; ++batch) {
      rocksdb::WriteBatch writes;
      const std::uint64_t operations = batch % 3 == 0 ? 1 : 1 + random() % 12;
      for (std::uint64_t i = 0; i < operations; ++i) {
        const std::string key = "key" + std::to_string(random() % 60);
        if (random() % 10 == 0) {
          (void)writes.Delete(key);
          model.erase(key);
          continue;
        }
        const std::uint64_t longest = batch % 8 == 7 ? 20000 : batch % 2 == 0 ? 100 : 3000;
        std::string value(random() % longest, '\0');
        for (char& one : value) one = static_cast<char>(random());
        (void)writes.Put(key, value);
        model[key] = value;
      }
      rocksdb::WriteOptions options;
      options.sync = batch == 23;
      const rocksdb::Status status = db().Write(options, &writes);
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    ASSERT_GT(db().GetSpillStatistics().live_generations, 1U);
  }

  // The files of its spill store.
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ + "/store")) {
      if (entry.is_regular_file() && entry.path().filename() != "LOCK" && entry.path().extension() != ".sst") {
        all.push_back(entry.path().string());
      }
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  static constexpr std::uint32_t kStagedPairs = 32;

  std::map<std::string, std::string> model;
  std::uint64_t put_back_bytes = 0;

 private:
  const StoreKind kind_;
  const std::string directory_;
  std::unique_ptr<device::EmulatedDevice> drive_;
  std::unique_ptr<DB> db_;
};

}  // namespace spillway::clients
