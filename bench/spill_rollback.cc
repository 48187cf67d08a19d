// The fastest way back (K8): what was spilled, put through RocksDB's log and memtable, or ingested as sorted files.
// Where the two cross is the default of SpillOptions::put_back_bytes. Prints one JSON document.
//
//   bench_spill_rollback [DIRECTORY [LARGEST_MIB]]     default: a temporary directory, 256
//
// A RocksDB of 256 MiB on a steady Cosmos+ drive of 4 GiB in real time, and in a directory of this machine. From 64 KiB
// on, values of 4 KiB or 100 B are overwritten in the spill store and brought back, in turns by
//
//   put                 the log in its order, as batches of 1 MiB, with RocksDB's log, the last one synced
//   put_flush           the same without RocksDB's log, then a flush
//   ingest              sorted files, ingested
//   db_put, db_ingest   spillway::DB::Rollback() with put_back_bytes beyond it, or 0
//
// Three rounds; medians, and the spread of the time. `seconds` is until what came back is durable, `flushed_seconds`
// until no memtable holds any of it; bytes written and CPU are of all of that, the CPU that plays the emulated drive
// included. Compactions are off while it is measured: every way leaves the same bytes in L0.
#include <rocksdb/env.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "device/emulated/emulated.h"
#include "device/preset/preset.h"
#include "fs/rocksdb/file_system.h"
#include "spill/compat/db_out.h"
#include "spill/rollback/sorted_files.h"
#include "spill/store/checksum.h"
#include "spill/store/region/region_store.h"
#include "spillway/db.h"

namespace {

using namespace spillway;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 3;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kSmallestKib = 64;
constexpr std::uint64_t kBaseBytes = 256 * kMiB;
constexpr std::size_t kKeyBytes = 16;
constexpr std::array<const char*, 5> kWays = {"put", "put_flush", "ingest", "db_put", "db_ingest"};

void require(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Where the database lies, and how to count what is written there.
struct Medium {
  std::string name;
  std::unique_ptr<device::EmulatedDevice> device;
  std::unique_ptr<fs::Volume> volume;
  std::unique_ptr<rocksdb::Env> own_env;
  rocksdb::Env* env = rocksdb::Env::Default();

  std::uint64_t bytes_written() const {
    if (device) return device->counters().host_bytes_written;
    std::ifstream io("/proc/self/io");  // wchar: bytes given to write calls, of which files are all but a few
    std::string key;
    std::uint64_t value = 0;
    while (io >> key >> value) {
      if (key == "wchar:") return value;
    }
    return 0;
  }
};

Medium emulated() {
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
  Medium medium;
  medium.name = "cosmos-plus, 4 GiB, steady, emulated in real time";
  medium.device = device::make_paced(std::move(model), 1);
  medium.volume = std::make_unique<fs::Volume>(*medium.device, fs::VolumeOptions{});
  medium.own_env = rocksdb::NewCompositeEnv(fs::make_rocksdb_file_system(*medium.volume));
  medium.env = medium.own_env.get();
  return medium;
}

struct Figures {
  double seconds = 0;
  double flushed_seconds = 0;
  double bytes_written = 0;  // per byte that came back
  double cpu_seconds = 0;
};

// A database of one value size on one medium.
class Bench {
 public:
  Bench(const Medium& medium, std::string directory, std::size_t value_bytes)
      : medium_(medium), directory_(std::move(directory)), value_bytes_(value_bytes) {
    for (char& byte : noise_) byte = static_cast<char>(random_());
    options_.create_if_missing = true;
    options_.env = medium.env;
    options_.compression = rocksdb::kNoCompression;
    options_.disable_auto_compactions = true;
    options_.level0_slowdown_writes_trigger = 1 << 20;
    options_.level0_stop_writes_trigger = 1 << 20;
    open_plain();
    rocksdb::WriteOptions no_log;
    no_log.disableWAL = true;
    const std::uint64_t keys = this->keys();
    for (std::uint64_t i = 0; i < keys; ++i) require(db_->Put(no_log, key_of(i * kStride % keys), value()));
    compact();
  }

  // Makes L0 empty.
  void compact() {
    open_plain();
    require(db_->CompactRange({}, nullptr, nullptr));
  }

  Figures bring_back(const std::string& way, std::uint64_t bytes) {
    return way.starts_with("db_") ? through_spillway(way == "db_put", bytes) : by_hand(way, bytes);
  }

 private:
  static constexpr std::uint64_t kStride = 7368787;  // a prime, so that the keys are loaded in no order

  std::uint64_t keys() const { return kBaseBytes / (kKeyBytes + value_bytes_); }
  static std::string key_of(std::uint64_t number) {
    char text[kKeyBytes + 1];
    std::snprintf(text, sizeof text, "%016llu", static_cast<unsigned long long>(number));
    return text;
  }
  std::string random_key() { return key_of(random_() % keys()); }
  rocksdb::Slice value() { return {noise_.data() + random_() % kMiB, value_bytes_}; }

  void open_plain() {
    if (db_) return;
    spillway_.reset();
    rocksdb::DB* db = nullptr;
    require(rocksdb::DB::Open(options_, directory_, spillway::spill::DbOut(&db)));
    db_.reset(db);
  }
  void open_spillway(std::uint64_t put_back_bytes) {
    db_.reset();
    spillway_.reset();
    SpillOptions spill;
    spill.rollback = RollbackPolicy::off;
    spill.generation_bytes = std::uint64_t{1} << 30;
    spill.put_back_bytes = put_back_bytes;
    spillway::DB* db = nullptr;
    require(spillway::DB::Open(options_, spill, directory_, &db));
    spillway_.reset(db);
  }

  template <typename Action>
  Figures measured(rocksdb::DB& db, std::uint64_t bytes, const Action& action) {
    const std::uint64_t written = medium_.bytes_written();
    const double cpu = cpu_seconds();
    const auto began = Clock::now();
    action();
    Figures figures;
    figures.seconds = seconds_since(began);
    require(db.Flush({}));
    figures.flushed_seconds = seconds_since(began);
    figures.bytes_written = static_cast<double>(medium_.bytes_written() - written) / static_cast<double>(bytes);
    figures.cpu_seconds = cpu_seconds() - cpu;
    return figures;
  }

  Figures through_spillway(bool put, std::uint64_t bytes) {
    open_spillway(put ? ~std::uint64_t{0} : 0);
    spillway_->SetDiversion(Diversion::always);
    for (std::uint64_t i = 0; i < bytes; i += kKeyBytes + value_bytes_) {
      require(spillway_->Put({}, random_key(), value()));
    }
    spillway_->SetDiversion(Diversion::never);
    const auto figures = measured(*spillway_, bytes, [&] { require(spillway_->Rollback()); });
    const SpillStatistics statistics = spillway_->GetSpillStatistics();
    if (statistics.live_entries > 0 || (put ? statistics.rollbacks_by_put : statistics.rollbacks_by_ingest) == 0) {
      throw std::runtime_error("spillway::DB went another way back than it was told to");
    }
    return figures;
  }

  Figures by_hand(const std::string& way, std::uint64_t bytes) {
    open_plain();
    spill::ColumnFamilies families;
    require(families.add(db_->DefaultColumnFamily()));
    std::unique_ptr<spill::Store> store;
    require(
        spill::open_region_store({medium_.env->GetFileSystem(), directory_ + "/by_hand", bytes * 2 + kMiB}, &store));
    require(store->recover([](const spill::StoredRecord&) { return rocksdb::Status::OK(); }));
    require(store->begin(++generation_));
    const auto generation = std::make_shared<spill::Generation>(generation_, families, nullptr);
    fill(*store, *generation, bytes);
    const auto figures = measured(*db_, bytes, [&] {
      if (way == "ingest") {
        ingest(*store, generation, families);
      } else {
        put(*store, *generation, way == "put");
      }
    });
    require(store->drop(generation_));
    store->release(generation_);
    return figures;
  }

  void fill(spill::Store& store, spill::Generation& generation, std::uint64_t bytes) {
    spill::Sequence sequence = 0;
    for (std::uint64_t done = 0; done < bytes; done += kKeyBytes + value_bytes_) {
      const std::string key = random_key();
      const std::string record = key + value().ToString();
      const rocksdb::Slice slice(record);
      std::uint64_t offset = 0;
      require(store.append({&slice, 1}, {&offset, 1}));
      generation.add(0, key, ++sequence, spill::Kind::put,
                     {offset, kKeyBytes, static_cast<std::uint32_t>(value_bytes_)}, spill::crc32c(value()));
    }
    require(store.sync());
  }

  void put(const spill::Store& store, const spill::Generation& generation, bool log) {
    rocksdb::WriteOptions options;
    options.disableWAL = !log;
    rocksdb::WriteBatch batch;
    require(store.scan(generation.id(), [&](const spill::StoredRecord& record) {
      const rocksdb::Slice key(record.bytes.data(), kKeyBytes);
      require(batch.Put(key, {record.bytes.data() + kKeyBytes, value_bytes_}));
      if (batch.GetDataSize() < kMiB) return rocksdb::Status::OK();
      const rocksdb::Status status = db_->Write(options, &batch);
      batch.Clear();
      return status;
    }));
    options.sync = log;
    require(db_->Write(options, &batch));
    if (!log) require(db_->Flush({}));
  }

  void ingest(const spill::Store& store, const std::shared_ptr<spill::Generation>& generation,
              const spill::ColumnFamilies& families) {
    std::vector<spill::SortedFile> files;
    const auto none_superseded = [](const spill::Entry&) { return false; };
    const spill::MergedRun run({&generation, 1}, generation->last_sequence(), families, none_superseded);
    require(write_sorted_files(run.next(run.bytes_left()), generation->id(), families, spill::ValueReader(store), store,
                               db_->GetDBOptions(), directory_ + "/by_hand", false, &files));
    rocksdb::IngestExternalFileOptions how;
    how.move_files = true;
    how.write_global_seqno = false;
    for (const spill::SortedFile& file : files) require(db_->IngestExternalFile({file.path}, how));
  }

  const Medium& medium_;
  const std::string directory_;
  const std::size_t value_bytes_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<spillway::DB> spillway_;
  std::mt19937_64 random_{1};
  std::string noise_ = std::string(2 * kMiB, '\0');  // values are pieces of it
  spill::GenerationId generation_ = 0;
};

double median(std::vector<Figures> rounds, double Figures::*what) {
  std::sort(rounds.begin(), rounds.end(), [&](const Figures& a, const Figures& b) { return a.*what < b.*what; });
  return rounds[rounds.size() / 2].*what;
}

Json row(std::uint64_t kib, const std::string& way, const std::vector<Figures>& rounds) {
  const auto [least, most] = std::minmax_element(
      rounds.begin(), rounds.end(), [](const Figures& a, const Figures& b) { return a.seconds < b.seconds; });
  return {{"kib", kib},
          {"way", way},
          {"seconds", median(rounds, &Figures::seconds)},
          {"min", least->seconds},
          {"max", most->seconds},
          {"flushed_seconds", median(rounds, &Figures::flushed_seconds)},
          {"bytes_written_per_byte", median(rounds, &Figures::bytes_written)},
          {"cpu_seconds", median(rounds, &Figures::cpu_seconds)}};
}

// The smallest size from which on `b` is never slower than `a`; null if there is none.
Json crossing(const Json& rows, const std::string& a, const std::string& b) {
  std::map<std::uint64_t, std::array<double, 2>> by_size;
  for (const Json& one : rows) {
    if (one["way"] == a) by_size[one["kib"]][0] = one["seconds"];
    if (one["way"] == b) by_size[one["kib"]][1] = one["seconds"];
  }
  Json from;
  for (const auto& [kib, seconds] : by_size) {
    if (seconds[1] > seconds[0]) {
      from = nullptr;
    } else if (from.is_null()) {
      from = kib;
    }
  }
  return from;
}

Json measure(const Medium& medium, const std::string& directory, std::size_t value_bytes, std::uint64_t largest_mib) {
  Bench bench(medium, directory, value_bytes);
  Json rows = Json::array();
  for (std::uint64_t kib = kSmallestKib; kib <= largest_mib * 1024; kib *= 4) {
    std::map<std::string, std::vector<Figures>> rounds;
    for (int round = 0; round < kRounds; ++round) {
      for (const char* way : kWays) {
        rounds[way].push_back(bench.bring_back(way, kib * 1024));
        std::cerr << medium.name << ", " << value_bytes << " B, " << kib << " KiB, " << way << ": "
                  << rounds[way].back().seconds << " s, flushed " << rounds[way].back().flushed_seconds << " s\n";
      }
    }
    bench.compact();
    for (const char* way : kWays) rows.push_back(row(kib, way, rounds[way]));
  }
  return {{"medium", medium.name},
          {"value_bytes", value_bytes},
          {"ingest_beats_put_from_kib", crossing(rows, "put", "ingest")},
          {"db_ingest_beats_db_put_from_kib", crossing(rows, "db_put", "db_ingest")},
          {"rows", rows}};
}

// What a spilled write of 4 KiB costs the store: a frame, a checksum, one append.
Json append_us(const Medium& medium, const std::string& directory) {
  constexpr std::uint64_t kAppends = 16384;
  const std::string record(4096, 'v');
  const rocksdb::Slice slice(record);
  std::uint64_t offset = 0;
  std::unique_ptr<spill::Store> store;
  require(spill::open_region_store({medium.env->GetFileSystem(), directory, kMiB << 10}, &store));
  std::vector<double> us;
  for (spill::GenerationId round = 1; round <= kRounds; ++round) {
    require(store->begin(round));
    const auto began = Clock::now();
    for (std::uint64_t i = 0; i < kAppends; ++i) require(store->append({&slice, 1}, {&offset, 1}));
    us.push_back(seconds_since(began) * 1e6 / kAppends);
    require(store->drop(round));
    store->release(round);
  }
  std::sort(us.begin(), us.end());
  return {{"medium", medium.name}, {"us", us[kRounds / 2]}, {"min", us.front()}, {"max", us.back()}};
}

void run(const std::filesystem::path& parent, std::uint64_t largest_mib) {
  std::string directory = (parent / "spillway-rollback-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) throw std::runtime_error("no directory can be made in " + parent.string());
  Json result = {
      {"rounds", kRounds}, {"database_bytes", kBaseBytes}, {"append_4kib", Json::array()}, {"points", Json::array()}};
  try {
    for (const bool is_emulated : {true, false}) {
      for (const std::size_t value_bytes : {std::size_t{4096}, std::size_t{100}}) {
        Medium medium;
        if (is_emulated) medium = emulated();
        if (!is_emulated) medium.name = "a directory";
        if (value_bytes == 4096) result["append_4kib"].push_back(append_us(medium, directory + "/appends"));
        result["points"].push_back(measure(medium, directory + "/db", value_bytes, largest_mib));
        std::filesystem::remove_all(directory + "/db");
      }
    }
  } catch (...) {
    std::filesystem::remove_all(directory);
    throw;
  }
  std::filesystem::remove_all(directory);
  std::cout << result.dump(1) << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path(),
        argc > 2 ? std::stoull(argv[2]) : 256);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_spill_rollback: %s\n", error.what());
    return 1;
  }
  return 0;
}
