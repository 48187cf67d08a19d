// Range queries with data in both stores against RocksDB alone: Seek to a random key + 1024 Next (KVAccel's workload D,
// K20: keys of 4 B, values of 4 KiB), on emulated Cosmos+ drives of a scaled capacity. Prints one JSON document.
//
//   bench_spill_scan [SCANS [KEYS [real|virtual [KEY=VALUE...]]]]     default: 40 scans of each in each setup, 20000
//   keys, virtual time; KEY=VALUE: changes of the preset, for both databases, such as namespaces.retrieve_offset=true
//
// Both databases are given the same keys in the same random order; spillway::DB diverts the last of them and does not
// bring them back. What is diverted is either new, so that each key is in one store as when a database is filled, or
// overwrites what RocksDB has, which then reads what nobody wants to know. When RocksDB has settled, scans of one and
// the other take turns, each pair from the same key. Each database has a drive of its own and reads it past the page
// cache, with a block cache of a twentieth of the data. The spill store is a region, or the drive's key-value
// namespace. `ratio` is Spillway's queries per second over RocksDB's.
//
// The time is the drive's alone, in virtual time, which a loaded machine does not change; `real` paces the drive, and
// the processor's time counts too.
#include <rocksdb/cache.h>
#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "fs/rocksdb/file_system.h"
#include "fs/volume.h"
#include "spill/compat/db_out.h"
#include "spill/store/kv/kv_store.h"
#include "spillway/db.h"

namespace {

using namespace spillway;
using Json = nlohmann::ordered_json;

constexpr int kNexts = 1024;  // K20
constexpr std::size_t kValueBytes = 4096;

struct Setup {
  bool in_kv;    // the spill store is the drive's key-value namespace, not a region
  double share;  // of the keys, diverted
  bool is_new;
};
constexpr Setup kSetups[] = {{false, 0.1, true}, {false, 0.5, true}, {false, 0.1, false}, {false, 0.5, false},
                             {true, 0.1, true},  {true, 0.5, true},  {true, 0.1, false},  {true, 0.5, false}};

void must(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << "\n";
  std::exit(1);
}

std::string key_of(std::uint32_t number) {
  std::string key(4, '\0');
  for (int i = 3; i >= 0; --i, number >>= 8) key[static_cast<std::size_t>(i)] = static_cast<char>(number & 0xff);
  return key;
}

// A database on an emulated drive in real time.
struct Stand {
  std::unique_ptr<device::EmulatedDevice> device;
  std::unique_ptr<fs::Volume> volume;
  std::unique_ptr<rocksdb::Env> env;
  std::unique_ptr<rocksdb::DB> db;
  DB* spill = nullptr;
  std::vector<double> scan_us;
  ssd::Counters before;  // the scans
};

rocksdb::Options options_of(const Stand& stand, std::uint64_t data_bytes) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = stand.env.get();
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = 16 << 20;
  options.target_file_size_base = 16 << 20;
  options.max_bytes_for_level_base = 64 << 20;
  options.max_background_jobs = 2;
  options.use_direct_reads = true;
  options.use_direct_io_for_flush_and_compaction = true;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(data_bytes / 20);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

enum class With : std::uint8_t { rocksdb, region, kv };

Stand open(const device::Drive& drive, const std::string& directory, With with, std::uint64_t data_bytes,
           bool in_real_time) {
  Stand stand;
  stand.device = in_real_time ? device::make_paced(device::DriveModel(drive, 1), 1.0)
                              : device::make_simulated(device::DriveModel(drive, 1));
  stand.volume = std::make_unique<fs::Volume>(*stand.device, fs::VolumeOptions());
  stand.env = rocksdb::NewCompositeEnv(fs::make_rocksdb_file_system(*stand.volume));
  const rocksdb::Options options = options_of(stand, data_bytes);
  if (with != With::rocksdb) {
    SpillOptions spill;
    if (with == With::kv) {
      std::unique_ptr<spill::Store> store;
      must(spill::open_kv_store({stand.device.get(), 0, "", nullptr}, &store));
      spill.store = std::move(store);
    }
    spill.rollback = RollbackPolicy::off;
    must(DB::Open(options, spill, directory, &stand.spill));
    stand.db.reset(stand.spill);
    stand.spill->SetDiversion(Diversion::never);
  } else {
    rocksdb::DB* db = nullptr;
    must(rocksdb::DB::Open(options, directory, spillway::spill::DbOut(&db)));
    stand.db.reset(db);
  }
  return stand;
}

// Until nothing is pending or running, twice in a row: work that goes from one property to the other between two
// readings is seen by the next.
void settle(rocksdb::DB& db) {
  must(db.Flush({}));
  for (int idle = 0; idle < 2;) {
    std::uint64_t busy = 0;
    for (const auto& name :
         {rocksdb::DB::Properties::kMemTableFlushPending, rocksdb::DB::Properties::kCompactionPending,
          rocksdb::DB::Properties::kNumRunningFlushes, rocksdb::DB::Properties::kNumRunningCompactions}) {
      std::uint64_t value = 0;
      db.GetIntProperty(name, &value);
      busy += value;
    }
    idle = busy == 0 ? idle + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void fill(Stand& stand, std::uint32_t keys, const Setup& setup) {
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> order(keys);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), random);
  std::string value(kValueBytes, '\0');
  const auto put = [&](std::uint32_t key) {
    for (char& byte : value) byte = static_cast<char>(random());
    must(stand.db->Put({}, key_of(key), value));
  };
  const auto diverted = order.end() - static_cast<std::ptrdiff_t>(setup.share * keys);
  std::for_each(order.begin(), setup.is_new ? diverted : order.end(), put);
  settle(*stand.db);
  if (stand.spill != nullptr) stand.spill->SetDiversion(Diversion::always);
  std::for_each(diverted, order.end(), put);
  settle(*stand.db);
}

void scan(Stand& stand, std::uint32_t from) {
  const auto began = stand.device->now();
  const std::unique_ptr<rocksdb::Iterator> iterator(stand.db->NewIterator({}));
  std::size_t bytes = 0;
  iterator->Seek(key_of(from));
  for (int i = 0; i < kNexts && iterator->Valid(); ++i, iterator->Next()) bytes += iterator->value().size();
  must(iterator->status());
  if (bytes != kNexts * kValueBytes) must(rocksdb::Status::Corruption("a scan found too little"));
  stand.scan_us.push_back(static_cast<double>(stand.device->now() - began) / 1e3);
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

Json measure(const device::Drive& drive, const std::string& directory, const Setup& setup, int scans,
             std::uint32_t keys, bool in_real_time) {
  const std::uint64_t data_bytes = keys * kValueBytes;
  std::filesystem::create_directories(directory);
  Stand plain = open(drive, directory + "/plain", With::rocksdb, data_bytes, in_real_time);
  Stand spill = open(drive, directory + "/spill", setup.in_kv ? With::kv : With::region, data_bytes, in_real_time);
  fill(plain, keys, setup);
  fill(spill, keys, setup);
  plain.before = plain.device->counters();
  spill.before = spill.device->counters();
  std::mt19937_64 random(2);
  std::vector<double> ratios;
  for (int i = 0; i < scans; ++i) {
    const auto from = static_cast<std::uint32_t>(random() % (keys - kNexts - 1));
    scan(i % 2 == 0 ? plain : spill, from);
    scan(i % 2 == 0 ? spill : plain, from);
    ratios.push_back(plain.scan_us.back() / spill.scan_us.back());
  }
  const SpillStatistics statistics = spill.spill->GetSpillStatistics();
  const auto figures = [scans](const Stand& stand) {
    const ssd::Counters after = stand.device->counters();
    const auto each = [&](std::uint64_t ssd::Counters::*counter) {
      return (after.*counter - stand.before.*counter) / static_cast<std::uint64_t>(scans);
    };
    return Json{{"median_us", quantile(stand.scan_us, 0.5)},
                {"p10_us", quantile(stand.scan_us, 0.1)},
                {"p90_us", quantile(stand.scan_us, 0.9)},
                {"reads_per_query", each(&ssd::Counters::host_reads)},
                {"bytes_per_query", each(&ssd::Counters::host_bytes_read)},
                {"channel_busy_us_per_query", each(&ssd::Counters::channel_busy_ns) / 1000}};
  };
  return {
      {"store", setup.in_kv ? "kv" : "region"},
      {"share_diverted", setup.share},
      {"diverted", setup.is_new ? "new keys" : "overwrites"},
      {"live_entries", statistics.live_entries},
      {"scans", scans},
      {"rocksdb", figures(plain)},
      {"spillway", figures(spill)},
      {"ratio", {{"median", quantile(ratios, 0.5)}, {"p10", quantile(ratios, 0.1)}, {"p90", quantile(ratios, 0.9)}}}};
}

}  // namespace

int main(int argc, char** argv) {
  const int scans = argc > 1 ? std::stoi(argv[1]) : 40;
  const auto keys = static_cast<std::uint32_t>(argc > 2 ? std::stoul(argv[2]) : 20'000);
  const bool in_real_time = argc > 3 && std::string(argv[3]) == "real";
  device::DriveSpec spec;
  spec.preset = "cosmos-plus";
  spec.preset_dirs = device::default_preset_dirs();
  spec.set = {{"capacity.capacity_bytes", "2GiB"}, {"namespaces.kv_share", "0.2"}};
  for (int i = 4; i < argc; ++i) {
    const std::string change(argv[i]);
    const std::size_t at = std::min(change.find('='), change.size());
    spec.set[change.substr(0, at)] = change.substr(std::min(at + 1, change.size()));
  }
  const auto drive = device::resolve(spec);
  if (!drive) {
    std::cerr << drive.status().message() << "\n";
    return 2;
  }
  std::string directory = (std::filesystem::temp_directory_path() / "spill-scan-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) {
    std::cerr << "no temporary directory at " << directory << "\n";
    return 2;
  }
  Json results = Json::array();
  for (const Setup& setup : kSetups) {
    const std::string of_one = directory + "/" + std::to_string(results.size());
    results.push_back(measure(drive.value(), of_one, setup, scans, keys, in_real_time));
    std::cerr << results.back().dump() << std::endl;
    std::filesystem::remove_all(of_one);
  }
  std::filesystem::remove_all(directory);
  std::cout << Json{{"drive", spec.preset},
                    {"capacity", "2GiB"},
                    {"time", in_real_time ? "real" : "virtual"},
                    {"keys", keys},
                    {"results", results}}
                   .dump(1)
            << std::endl;
  return 0;
}
