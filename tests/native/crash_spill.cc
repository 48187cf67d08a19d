#include "crash_spill.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "device/kv_contents.h"
#include "device_small_drive.h"
#include "spill/kv_store.h"

namespace spillway::crash {

namespace {

using rocksdb::Status;

// The spill store in the key-value namespace of a drive, whose contents are the file <root>.kv.
ssd::SsdConfig kv_drive(double share) {
  ssd::SsdConfig config = device::small_drive();
  config.namespaces.kv_share = share;
  config.namespaces.memtable_bytes = 256 << 10;
  return config;
}

// Of a file that is mapped, pages of any age: here as they were last, or as they never were. Its first was synced.
void lose_pages(const std::string& path, std::mt19937_64& random) {
  constexpr std::uint64_t kPage = 4096;
  const std::string nothing(kPage, '\0');
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::uint64_t kept_of_four = 1 + random() % 4;
  for (std::uint64_t at = kPage; at < std::filesystem::file_size(path); at += kPage) {
    if (random() % 4 < kept_of_four) continue;
    file.seekp(static_cast<std::streamoff>(at));
    file.write(nothing.data(), static_cast<std::streamsize>(nothing.size()));
  }
}

// The drive keeps what it has answered; of what was on its way, whatever it got to; and of what was to follow, what the
// host had written back.
void lose_commands_of(double share, const std::string& root, const std::string& next, std::mt19937_64& random) {
  if (!std::filesystem::exists(root + ".kv")) return;
  std::filesystem::rename(root + ".kv", next + ".kv");
  std::filesystem::rename(root + ".kv.staged", next + ".kv.staged");
  lose_pages(next + ".kv.staged", random);
  const ssd::SsdConfig config = kv_drive(share);
  const std::uint64_t capacity = ssd::Ssd(config, 1).layout().kv_units * config.geometry.mapping_unit_bytes;
  auto contents = device::KvContents::open(next + ".kv", capacity, config.namespaces.memtable_bytes);
  ASSERT_TRUE(contents) << contents.status().message();
  (*contents)->settle_left_over([&](std::uint64_t) { return random() % 2 == 0; });
}

}  // namespace

SpillOptions small_spill() {
  SpillOptions options;
  options.capacity_bytes = 8 << 20;
  options.generation_bytes = 32 << 10;  // so that there are several, and sealed ones
  options.index_bytes = 8 << 20;
  options.rollback = RollbackPolicy::off;  // but when it is stirred
  options.poll_interval = std::chrono::milliseconds(1);
  return options;
}

Opener open_spillway(const SpillOptions& spill) {
  return [spill](const std::string& root, rocksdb::Env* env, Opened* opened) {
    const rocksdb::Options options = small_options(env);
    DB* db = nullptr;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : families_in(root + "/db", env)) families.emplace_back(name, options);
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    const Status status = DB::Open(options, spill, root + "/db", families, &handles, &db);
    take_handles(handles, opened);
    opened->db.reset(db);
    return status;
  };
}

Opener open_on_kv(const SpillOptions& spill, double share) {
  return [spill, share](const std::string& root, rocksdb::Env* env, Opened* opened) {
    std::shared_ptr<device::EmulatedDevice> drive = device::make_simulated(ssd::Ssd(kv_drive(share), 1));
    opened->drive = drive;
    std::unique_ptr<spill::Store> store;
    const Status status = spill::open_kv_store({drive.get(), 0, root + ".kv", nullptr}, &store);
    if (!status.ok()) return status;
    SpillOptions with_store = spill;
    with_store.store = std::move(store);
    return open_spillway(with_store)(root, env, opened);
  };
}

LosePower lose_commands(double share) {
  return [share](const std::string& root, const std::string& next, std::mt19937_64& random) {
    lose_commands_of(share, root, next, random);
  };
}

// Stalls that come and go, and what a user may ask for meanwhile.
std::string stir(Scene& scene) {
  auto& spillway = dynamic_cast<DB&>(*scene.store.db);
  std::mt19937_64& random = scene.random;
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      spillway.SetDiversion(Diversion::always);
      break;
    case 3:
    case 4:
      spillway.SetDiversion(Diversion::never);
      break;
    case 5:
    case 6:
      spillway.Rollback().PermitUncheckedError();
      break;
    default:
      rocksdb::FlushOptions options;
      options.wait = false;
      options.allow_write_stall = true;
      spillway.Flush(options).PermitUncheckedError();
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
  return {};
}

// One plan for each way back.
SpillOptions by_put() {
  SpillOptions options = small_spill();
  options.put_back_bytes = 64 << 20;
  return options;
}
SpillOptions by_ingestion() {
  SpillOptions options = small_spill();
  options.put_back_bytes = 0;
  return options;
}

void expect_kept(const CrashPlan& plan) {
  const CrashReport report = run_crashes(plan);
  EXPECT_EQ(report.failure, "");
  EXPECT_GT(report.operations, 0);
}

}  // namespace spillway::crash
