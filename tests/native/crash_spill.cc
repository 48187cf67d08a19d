#include "crash_spill.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_bytes.h"
#include "device/kv/kv_contents.h"
#include "device_small_drive.h"
#include "spill/store/kv/kv_store.h"

namespace spillway::crash {

namespace {

using rocksdb::Status;

// The spill store in the key-value namespace of a drive, whose contents are the file <root>.kv.
ssd::SsdConfig kv_drive(double share) {
  ssd::SsdConfig config = device::small_drive();
  config.namespaces.kv_share = share;
  config.namespaces.memtable_bytes = 128 << 10;
  EXPECT_FALSE(ssd::problem(config)) << ssd::problem(config)->message;
  return config;
}

constexpr std::uint32_t kStagedPairs = 64;  // few, so that recovery reads all slots soon
constexpr std::uint64_t kPage = 4096;
constexpr const char* kStaged = ".kv.staged";
constexpr const char* kDurable = ".kv.staged.durable";  // what msync() last made durable of it

void set_contents(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Keeps of each page of a mapped file a random state: the last one, or the last durable one.
void lose_pages(const std::string& root, std::mt19937_64& random) {
  std::string staged = file_bytes(root + kStaged);
  std::string durable = file_bytes(root + kDurable);
  durable.resize(staged.size());
  const std::uint64_t kept_of_four = random() % 5;
  for (std::uint64_t at = 0; at < staged.size(); at += kPage) {
    if (random() % 4 >= kept_of_four) staged.replace(at, kPage, durable, at, kPage);
  }
  set_contents(root + kStaged, staged);
  set_contents(root + kDurable, staged);
}

// The drive keeps what it has answered, and any part of the commands in flight. Of staging it keeps what the host had
// written back.
void lose_commands_of(double share, const std::string& root, const std::string& next, std::mt19937_64& random) {
  if (!std::filesystem::exists(root + ".kv")) return;
  for (const char* file : {".kv", kStaged, kDurable}) {
    if (std::filesystem::exists(root + file)) std::filesystem::rename(root + file, next + file);
  }
  lose_pages(next, random);
  const ssd::SsdConfig config = kv_drive(share);
  const std::uint64_t capacity = ssd::Ssd(config, 1).layout().kv_units * config.geometry.mapping_unit_bytes;
  auto contents = device::KvContents::open(next + ".kv", capacity, config.namespaces.memtable_bytes);
  ASSERT_TRUE(contents) << contents.status().message();
  (*contents)->settle_leftovers([&](std::uint64_t) { return random() % 2 == 0; });
}

// Records what of this process's staging is durable. A returned sync has made durable what was there when it began, and
// not necessarily what was written meanwhile.
class StagingSyncs {
 public:
  void begin(const std::string& root) {
    const std::lock_guard lock(mutex_);
    root_ = root;
  }

  int sync(void* address, std::size_t length, int flags) {
    std::uint64_t number = 0;
    std::string bytes;
    {
      const std::lock_guard lock(mutex_);
      if (!root_.empty()) {
        number = ++begun_;
        bytes = file_bytes(root_ + kStaged).substr(0, length);  // other threads write to the memory
      }
    }
    const auto result = static_cast<int>(syscall(SYS_msync, address, length, flags));
    if (result != 0 || number == 0) return result;
    const std::lock_guard lock(mutex_);
    numbers_.resize(std::max(numbers_.size(), bytes.size() / kPage + 1));
    const std::string path = root_ + kDurable;
    if (!std::filesystem::exists(path)) set_contents(path, {});
    if (noted_.empty()) noted_ = file_bytes(path);
    noted_.resize(std::max(noted_.size(), bytes.size()));
    std::fstream durable(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::uint64_t page = 0; page * kPage < bytes.size(); ++page) {
      const std::string_view now = std::string_view(bytes).substr(page * kPage, kPage);
      const std::string_view noted = std::string_view(noted_).substr(page * kPage, kPage);
      if (number < numbers_[page]) continue;  // a sync that began later has returned
      numbers_[page] = number;
      if (now == noted) continue;
      durable.seekp(static_cast<std::streamoff>(page * kPage));
      durable.write(now.data(), static_cast<std::streamsize>(now.size()));
      noted_.replace(page * kPage, kPage, now);
    }
    return result;
  }

 private:
  std::mutex mutex_;
  std::string root_;  // empty: not recorded
  std::uint64_t begun_ = 0;
  std::vector<std::uint64_t> numbers_;  // of each page: the number of the sync that made it durable
  std::string noted_;                   // the contents of the file
};

StagingSyncs& staging_syncs() {
  static StagingSyncs syncs;
  return syncs;
}

}  // namespace

SpillOptions small_spill() {
  SpillOptions options;
  options.capacity_bytes = 8 << 20;
  options.generation_bytes = 32 << 10;  // small, so that there are several, and sealed ones
  options.index_bytes = 8 << 20;
  options.rollback = RollbackPolicy::off;  // except by the stir
  options.poll_ms = 1;
  return options;
}

Opener open_spillway(const SpillOptions& spill, const Tune& tune) {
  return [spill, tune](const std::string& root, rocksdb::Env* env, Opened* opened) {
    rocksdb::Options options = small_options(env);
    if (tune) tune(root + "/db", options);
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
    staging_syncs().begin(root);
    std::shared_ptr<device::EmulatedDevice> drive = device::make_simulated(ssd::Ssd(kv_drive(share), 1));
    opened->drive = drive;
    std::unique_ptr<spill::Store> store;
    const Status status = spill::open_kv_store({drive.get(), 0, root + ".kv", nullptr, kStagedPairs}, &store);
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

// Turns stalls on and off, and makes the calls that a user may make meanwhile.
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

// One set of options for each way back.
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

// Replaces the C library's function. Only staging maps files, and syncs them from their beginning.
extern "C" int msync(void* address, std::size_t length, int flags) {
  return spillway::crash::staging_syncs().sync(address, length, flags);
}
