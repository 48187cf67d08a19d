// What it costs to create the guard (decision 0012), which would stand before the first diverted write if it were
// created then: CreateColumnFamily, with the syncs of MANIFEST and OPTIONS that it makes. Prints one JSON document.
//
//   bench_spill_guard [DIRECTORY [ROUNDS]]     default: a temporary directory, 40
//
// In a directory of this machine, and on a Cosmos+ drive of 4 GiB in real time, steady; idle, and while one thread
// writes values of 4 KiB as fast as RocksDB takes them, stalls included. Milliseconds.
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <thread>

#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "fs/rocksdb/file_system.h"
#include "spill/compat/db_out.h"
#include "spill/main_db/binding.h"

namespace {

using namespace spillway;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

void require(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

struct Emulated {
  std::unique_ptr<device::EmulatedDevice> device;
  std::unique_ptr<fs::Volume> volume;
  std::unique_ptr<rocksdb::Env> env;
};

Emulated emulated() {
  device::DriveSpec spec;
  spec.preset = "cosmos-plus";
  spec.preset_dirs = device::default_preset_dirs();
  spec.set = {{"capacity.capacity_bytes", "4GiB"}};
  auto drive = device::resolve(spec);
  if (!drive) throw std::runtime_error(drive.status().message());
  device::DriveModel model(drive.value(), 1);
  device::InitialState steady;
  steady.kind = device::InitialState::Kind::steady;
  if (const Status prepared = device::prepare(model, steady, 1); !prepared)
    throw std::runtime_error(prepared.message());
  Emulated made;
  made.device = device::make_paced(std::move(model), 1);
  made.volume = std::make_unique<fs::Volume>(*made.device, fs::VolumeOptions{});
  made.env = rocksdb::NewCompositeEnv(fs::make_rocksdb_file_system(*made.volume));
  return made;
}

// Overwrites 100,000 keys until it goes.
class Load {
 public:
  explicit Load(rocksdb::DB& db) : thread_([this, &db] { run(db); }) {
    while (written_ < 20000) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ~Load() {
    stop_ = true;
    thread_.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  void run(rocksdb::DB& db) {
    std::mt19937_64 random(1);
    std::string value(4096, '\0');
    for (; !stop_; ++written_) {
      for (std::size_t i = 0; i < value.size(); i += 8) *reinterpret_cast<std::uint64_t*>(&value[i]) = random();
      require(db.Put({}, "key" + std::to_string(random() % 100000), value));
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> written_{0};
  std::thread thread_;
};

Json measure(rocksdb::DB& db, int rounds) {
  std::vector<double> create;
  std::vector<double> drop;
  for (int i = 0; i < rounds; ++i) {
    rocksdb::ColumnFamilyHandle* guard = nullptr;
    const auto began = Clock::now();
    require(db.CreateColumnFamily(spill::guard_options(), "guard" + std::to_string(i), &guard));
    const auto created = Clock::now();
    require(db.DropColumnFamily(guard));
    const auto dropped = Clock::now();
    require(db.DestroyColumnFamilyHandle(guard));
    create.push_back(std::chrono::duration<double, std::milli>(created - began).count());
    drop.push_back(std::chrono::duration<double, std::milli>(dropped - created).count());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const auto figures = [](std::vector<double>& of) {
    std::sort(of.begin(), of.end());
    return Json{{"p50", of[of.size() / 2]}, {"p90", of[of.size() * 9 / 10]}, {"max", of.back()}};
  };
  return {{"create_ms", figures(create)}, {"drop_ms", figures(drop)}};
}

Json measure_on(rocksdb::Env* env, const std::string& directory, int rounds) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = 16 << 20;
  rocksdb::DB* opened = nullptr;
  require(rocksdb::DB::Open(options, directory, spillway::spill::DbOut(&opened)));
  const std::unique_ptr<rocksdb::DB> db(opened);
  Json result = {{"idle", measure(*db, rounds)}};
  const Load load(*db);
  result["under_load"] = measure(*db, rounds);
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::string made = (std::filesystem::temp_directory_path() / "spill-guard-XXXXXX").string();
    if (argc < 2 && mkdtemp(made.data()) == nullptr) throw std::runtime_error("no temporary directory");
    const std::filesystem::path directory = argc > 1 ? argv[1] : made;
    const int rounds = argc > 2 ? std::stoi(argv[2]) : 40;
    std::filesystem::create_directories(directory);
    Json result = {{"rounds", rounds}};
    result["directory"] = measure_on(rocksdb::Env::Default(), directory / "plain", rounds);
    const Emulated drive = emulated();
    result["emulated"] = measure_on(drive.env.get(), directory / "emulated", rounds);
    if (argc < 2) std::filesystem::remove_all(directory);
    std::cout << result.dump(2) << std::endl;
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_spill_guard: " << error.what() << "\n";
    return 1;
  }
}
