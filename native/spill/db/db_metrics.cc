// GetProperty("spillway.prometheus"): the statistics, and what RocksDB says of its own stalls.
#include <rocksdb/statistics.h>
#include <rocksdb/write_buffer_manager.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "spill/compat/stall_counts.h"
#include "spill/db/db_impl.h"
#include "spill/report/prometheus.h"

namespace spillway::spill {
namespace {

using MetricKind = PrometheusText::Kind;
using Properties = rocksdb::DB::Properties;

// What RocksDB says of one column family.
struct FamilyFigures {
  std::string name;
  std::uint64_t l0_files = 0;
  std::uint64_t immutable_memtables = 0;
  std::uint64_t memtable_bytes = 0;
  std::uint64_t pending_compaction_bytes = 0;
  std::optional<StallCounts> stalls;
};

std::uint64_t number_of(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family, const std::string& name) {
  std::uint64_t value = 0;
  return db.GetIntProperty(family, name, &value) ? value : 0;
}

FamilyFigures figures_of(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family) {
  FamilyFigures figures;
  std::string l0_files;
  figures.name = family->GetName();
  if (db.GetProperty(family, Properties::kNumFilesAtLevelPrefix + "0", &l0_files)) {
    figures.l0_files = std::strtoull(l0_files.c_str(), nullptr, 10);
  }
  figures.immutable_memtables = number_of(db, family, Properties::kNumImmutableMemTable);
  figures.memtable_bytes = number_of(db, family, Properties::kCurSizeAllMemTables);
  figures.pending_compaction_bytes = number_of(db, family, Properties::kEstimatePendingCompactionBytes);
  figures.stalls = stall_counts_of(db, family);
  return figures;
}

void add_families(const std::vector<FamilyFigures>& families, PrometheusText* text) {
  const struct {
    const char* name;
    const char* help;
    std::uint64_t FamilyFigures::*figure;
  } gauges[] = {
      {"rocksdb_l0_files", "files in L0", &FamilyFigures::l0_files},
      {"rocksdb_immutable_memtables", "memtables that wait for a flush", &FamilyFigures::immutable_memtables},
      {"rocksdb_memtable_bytes", "memory of the memtables that are not flushed", &FamilyFigures::memtable_bytes},
      {"rocksdb_pending_compaction_bytes", "RocksDB's estimate of the compaction work to do",
       &FamilyFigures::pending_compaction_bytes},
  };
  for (const auto& gauge : gauges) {
    text->metric(MetricKind::gauge, gauge.name, gauge.help);
    for (const FamilyFigures& one : families) text->sample({{"column_family", one.name}}, one.*gauge.figure);
  }
  text->metric(MetricKind::counter, "rocksdb_stalls",
               "write stalls that RocksDB has counted since Open, diverted or not");
  for (const FamilyFigures& one : families) {
    if (!one.stalls) continue;
    const struct {
      const char* cause;
      const StallCounts::Cause& count;
    } causes[] = {{"memtable", one.stalls->memtable},
                  {"l0", one.stalls->l0},
                  {"pending_compaction_bytes", one.stalls->pending_compaction_bytes}};
    for (const auto& each : causes) {
      const auto sample = [&](const char* state, std::uint64_t count) {
        text->sample({{"column_family", one.name}, {"cause", each.cause}, {"state", state}}, count);
      };
      sample("stopped", each.count.stopped);
      sample("delayed", each.count.delayed);
    }
  }
}

void add_memory(rocksdb::DB& db, const rocksdb::WriteBufferManager& memory, PrometheusText* text) {
  text->metric(MetricKind::gauge, "rocksdb_write_buffer_manager_used_bytes",
               "memory that the WriteBufferManager counts");
  text->sample({}, memory.memory_usage());
  text->metric(MetricKind::gauge, "rocksdb_write_buffer_manager_limit_bytes",
               "memory that the WriteBufferManager allows");
  text->sample({}, memory.buffer_size());
  text->metric(MetricKind::gauge, "rocksdb_write_buffer_manager_stalled",
               "1 while the WriteBufferManager stops writers");
  text->sample({}, memory.ShouldStall() ? 1 : 0);
  const std::optional<std::uint64_t> stops = memory_stops_of(db);
  if (!stops) return;
  text->metric(MetricKind::counter, "rocksdb_write_buffer_manager_stops",
               "writes to RocksDB that met a WriteBufferManager which stops writers");
  text->sample({}, *stops);
}

// RocksDB counts these only with Options::statistics.
void add_written_bytes(const rocksdb::Statistics& statistics, PrometheusText* text) {
  text->metric(MetricKind::counter, "rocksdb_written_bytes", "bytes that RocksDB has written to its files, by cause");
  text->sample({{"cause", "wal"}}, statistics.getTickerCount(rocksdb::WAL_FILE_BYTES));
  text->sample({{"cause", "flush"}}, statistics.getTickerCount(rocksdb::FLUSH_WRITE_BYTES));
  text->sample({{"cause", "compaction"}}, statistics.getTickerCount(rocksdb::COMPACT_WRITE_BYTES));
}

void add_database(rocksdb::DB& db, PrometheusText* text) {
  const struct {
    MetricKind kind;
    const char* name;
    const char* help;
    const std::string& property;
  } figures[] = {
      {MetricKind::gauge, "rocksdb_write_stopped", "1 while RocksDB stops writers", Properties::kIsWriteStopped},
      {MetricKind::gauge, "rocksdb_delayed_write_bytes_per_second",
       "the rate to which RocksDB delays writers; 0: no delay", Properties::kActualDelayedWriteRate},
      {MetricKind::gauge, "rocksdb_running_flushes", "flushes that run now", Properties::kNumRunningFlushes},
      {MetricKind::gauge, "rocksdb_running_compactions", "compactions that run now",
       Properties::kNumRunningCompactions},
      {MetricKind::counter, "rocksdb_background_errors", "errors of flushes and compactions",
       Properties::kBackgroundErrors},
  };
  for (const auto& figure : figures) {
    text->metric(figure.kind, figure.name, figure.help);
    text->sample({}, number_of(db, db.DefaultColumnFamily(), figure.property));
  }
}

}  // namespace

std::string DbImpl::metrics() {
  std::vector<std::uint32_t> ids;
  live_.families().for_each([&](const ColumnFamily& family) {
    if (!family.is_dropped && family.handle != nullptr) ids.push_back(family.id);
  });
  std::vector<FamilyFigures> families;
  for (const std::uint32_t id : ids) {
    const UsedColumnFamily family = live_.families().use(id);
    if (family.handle != nullptr) families.push_back(figures_of(base(), family.handle));  // else it was dropped
  }
  const rocksdb::DBOptions& options = main_.user_options().database();
  PrometheusText text;
  add_statistics(GetSpillStatistics(), &text);
  add_database(base(), &text);
  add_families(families, &text);
  if (options.write_buffer_manager != nullptr) add_memory(base(), *options.write_buffer_manager, &text);
  if (options.statistics != nullptr) add_written_bytes(*options.statistics, &text);
  return text.text();
}

}  // namespace spillway::spill
