// What a checkpoint, a backup or an ingestion costs writers whose writes are being diverted.
//
//   bench_spill_copies [DIRECTORY [SECONDS]]
//
// One thread writes 4 KiB values; after a third of the time another one makes the copy. Prints one JSON line for each:
// how long the call took, what lay in the spill store then, writes a second before it and while it ran, and the longest
// write while it ran. First under constant diversion with nothing brought back; then in stalls, where RocksDB's flushes
// and compactions have 32 MB/s, the controller chooses the way, and rollbacks run as they do. DIRECTORY must not exist;
// it is removed.
#include <rocksdb/db.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/backup_engine.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "spillway/db.h"

namespace {

using Clock = std::chrono::steady_clock;
using rocksdb::Status;

void require(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_spill_copies: %s\n", status.ToString().c_str());
  std::exit(2);
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

struct Write {
  Clock::time_point at;
  Clock::duration took;
};

// Random keys, until it is told to stop.
std::vector<Write> write_until(spillway::DB& db, const std::atomic<bool>& stop) {
  std::mt19937_64 random(1);
  const std::string value(4096, 'v');
  std::vector<Write> writes;
  while (!stop) {
    const std::string key = std::to_string(random() % 2'000'000);
    const auto began = Clock::now();
    require(db.Put({}, key, value));
    writes.push_back({began, Clock::now() - began});
  }
  return writes;
}

using Call = std::function<Status(spillway::DB& db, const std::string& directory)>;

Status back_up(spillway::DB& db, const std::string& directory) {
  rocksdb::BackupEngine* made = nullptr;
  Status status = rocksdb::BackupEngine::Open(rocksdb::Env::Default(), rocksdb::BackupEngineOptions(directory), &made);
  const std::unique_ptr<rocksdb::BackupEngine> engine(made);
  return status.ok() ? engine->CreateNewBackup(&db) : status;
}

Status ingest(spillway::DB& db, const std::string& directory) {
  rocksdb::SstFileWriter writer({}, {});
  Status status = writer.Open(directory + ".sst");
  if (status.ok()) status = writer.Put("ingested", "1");
  if (status.ok()) status = writer.Finish();
  return status.ok() ? db.IngestExternalFile({directory + ".sst"}, {}) : status;
}

// Less than a third of what one writer of 4 KiB has on most machines, and more than a stalled one. Source: guess
constexpr std::int64_t kBackgroundBytesPerSecond = 32'000'000;

nlohmann::json measure(const std::string& name, const Call& call, const std::string& directory, double length_s,
                       bool in_stalls) {
  std::filesystem::create_directories(directory);
  rocksdb::Options options;
  options.create_if_missing = true;
  spillway::SpillOptions spill;
  if (in_stalls) {
    options.rate_limiter.reset(rocksdb::NewGenericRateLimiter(kBackgroundBytesPerSecond));
  } else {
    spill.rollback = spillway::RollbackPolicy::off;
  }
  spillway::DB* opened = nullptr;
  require(spillway::DB::Open(options, spill, directory + "/db", &opened));
  const std::unique_ptr<spillway::DB> db(opened);
  if (!in_stalls) db->SetDiversion(spillway::Diversion::always);
  std::atomic<bool> stop{false};
  std::vector<Write> writes;
  const auto began = Clock::now();
  std::thread writer([&] { writes = write_until(*db, stop); });
  std::this_thread::sleep_for(std::chrono::duration<double>(length_s / 3));
  const spillway::SpillStatistics on_call = db->GetSpillStatistics();
  const auto called = Clock::now();
  require(call(*db, directory + "/copy"));
  const auto returned = Clock::now();
  const spillway::SpillStatistics on_return = db->GetSpillStatistics();
  std::this_thread::sleep_for(std::chrono::duration<double>(length_s / 3));
  stop = true;
  writer.join();
  std::uint64_t before = 0;
  std::uint64_t meanwhile = 0;
  Clock::duration longest{};
  for (const Write& one : writes) {
    if (one.at < called) ++before;
    if (one.at >= called && one.at < returned) ++meanwhile;
    if (one.at + one.took >= called && one.at < returned) longest = std::max(longest, one.took);
  }
  return {{"call", name},
          {"diversion", in_stalls ? "in stalls" : "constant"},
          {"took_s", seconds(returned - called)},
          {"spilled_bytes", on_call.live_bytes},
          {"diverted_meanwhile_bytes", on_return.diverted_bytes - on_call.diverted_bytes},
          {"writes_per_s_before", static_cast<double>(before) / seconds(called - began)},
          {"writes_per_s_meanwhile", static_cast<double>(meanwhile) / seconds(returned - called)},
          {"longest_write_meanwhile_ms", seconds(longest) * 1e3}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string made = (std::filesystem::temp_directory_path() / "spill-copies-XXXXXX").string();
  if (argc < 2 && mkdtemp(made.data()) == nullptr) return 2;
  const std::string directory = argc > 1 ? argv[1] : made + "/bench";
  if (std::filesystem::exists(directory)) {
    std::fprintf(stderr, "usage: bench_spill_copies [DIRECTORY [SECONDS]]   (a directory that does not exist yet)\n");
    return 2;
  }
  const double length_s = argc > 2 ? std::atof(argv[2]) : 15;
  const std::vector<std::pair<std::string, Call>> calls{
      {"checkpoint", [](spillway::DB& db, const std::string& to) { return db.CreateCheckpoint(to); }},
      {"backup", back_up},
      {"ingestion", ingest}};
  for (const bool in_stalls : {false, true}) {
    for (const auto& [name, call] : calls) {
      std::printf("%s\n", measure(name, call, directory, length_s, in_stalls).dump().c_str());
      std::fflush(stdout);
      std::filesystem::remove_all(directory);
    }
  }
  if (argc < 2) std::filesystem::remove_all(made);
  return 0;
}
