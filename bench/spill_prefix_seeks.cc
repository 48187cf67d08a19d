// What seeks by prefix cost where prefix filters would save reads: RocksDB, spillway::DB with nothing spilled, and with
// a thousand keys spilled, when RocksDB's side iterates in total order. Prints one JSON document: processor time and
// blocks looked into for each seek, of prefixes that are there and of ones that are not, with prefix_same_as_start.
//
// Each database has eight L0 tables with a Bloom filter of prefixes, in the host's memory and RocksDB's block cache.
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "spill/compat/db_out.h"
#include "spillway/db.h"

namespace {

using Json = nlohmann::ordered_json;

constexpr int kPrefixes = 100'000;  // of which even ones are written
constexpr int kKeysEach = 10;
constexpr int kTables = 8;
constexpr int kSpilled = 1000;
constexpr int kSeeks = 20'000;
constexpr int kRounds = 5;  // the fastest counts

void must(const rocksdb::Status& status) {
  if (status.ok()) return;
  std::cerr << status.ToString() << "\n";
  std::exit(1);
}

double processor_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

std::string key_of(std::uint64_t prefix, std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%08llu%04llu", static_cast<unsigned long long>(prefix),
                static_cast<unsigned long long>(number));
  return text;
}

rocksdb::Options options() {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.whole_key_filtering = false;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.disable_auto_compactions = true;
  options.compression = rocksdb::kNoCompression;
  return options;
}

void fill(rocksdb::DB& db) {
  for (int i = 0; i < kTables; ++i) {
    std::mt19937_64 random(static_cast<std::uint64_t>(i));
    for (int n = 0; n < 30'000; ++n) {
      must(db.Put({}, key_of(2 * (random() % kPrefixes), random() % kKeysEach), std::string(100, 'v')));
    }
    must(db.Flush({}));
  }
}

Json seeks(rocksdb::DB& db, bool present) {
  rocksdb::ReadOptions read;
  read.prefix_same_as_start = true;
  const std::unique_ptr<rocksdb::Iterator> iterator(db.NewIterator(read));
  rocksdb::SetPerfLevel(rocksdb::kEnableCount);
  double best = std::numeric_limits<double>::max();
  std::uint64_t blocks = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::mt19937_64 random(7);
    rocksdb::get_perf_context()->Reset();
    const double began = processor_ns();
    for (int i = 0; i < kSeeks; ++i) {
      iterator->Seek(key_of(2 * (random() % kPrefixes) + (present ? 0 : 1), 0));
      while (iterator->Valid()) iterator->Next();
    }
    must(iterator->status());
    best = std::min(best, processor_ns() - began);
    blocks = rocksdb::get_perf_context()->block_read_count + rocksdb::get_perf_context()->block_cache_hit_count;
  }
  return {{"cpu_us_per_seek", best / kSeeks / 1000}, {"blocks_per_seek", static_cast<double>(blocks) / kSeeks}};
}

Json both(rocksdb::DB& db) { return {{"present", seeks(db, true)}, {"absent", seeks(db, false)}}; }

}  // namespace

int main() {
  std::string directory = (std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp") + std::string("/seeks-XXXXXX");
  if (mkdtemp(directory.data()) == nullptr) return 1;
  Json document;
  {
    rocksdb::DB* made = nullptr;
    must(rocksdb::DB::Open(options(), directory + "/plain", spillway::spill::DbOut(&made)));
    const std::unique_ptr<rocksdb::DB> plain(made);
    spillway::SpillOptions spill_options;
    spill_options.rollback = spillway::RollbackPolicy::off;
    spillway::DB* spill = nullptr;
    must(spillway::DB::Open(options(), spill_options, directory + "/spill", &spill));
    const std::unique_ptr<spillway::DB> owned(spill);
    fill(*plain);
    fill(*spill);
    document["rocksdb"] = both(*plain);
    document["nothing_spilled"] = both(*spill);
    spill->SetDiversion(spillway::Diversion::always);
    for (std::uint64_t i = 0; i < kSpilled; ++i) must(spill->Put({}, key_of(2 * i * 97, 3), "v"));
    document["some_spilled"] = both(*spill);
  }
  std::filesystem::remove_all(directory);
  std::cout << document.dump(2) << "\n";
}
