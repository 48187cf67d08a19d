// Writes parts of a merged run as SST files, ready for ingestion (K8: bulk serialise, merge). Deletions are included,
// because they hide older versions in RocksDB.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "spill/live/column_families.h"
#include "spill/live/value_reader.h"
#include "spill/rollback/merged_run.h"

namespace spillway::spill {

struct SortedFile {
  std::uint32_t column_family = 0;
  std::string path;
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  // As RocksDB computed it while the file was written; both empty without file_checksum_gen_factory.
  std::string checksum;
  std::string checksum_name;
};

// What whoever has files written is told and asked meanwhile, each of which may be empty.
struct SortedProgress {
  // Now and then, how many bytes of keys and values were written.
  std::function<void(std::uint64_t bytes)> on_written = {};
  // Whether reads may keep the drive busy without a pause, because nobody else needs it: no where empty.
  std::function<bool()> may_take_drive = {};
};

// The level for which files are written, whose compression they have. `base`: the first below L0 that RocksDB uses.
struct SortedLevel {
  int level = 0;
  int base = 1;
  // About; 0: one file for each part. REQUIRES: 0 where a part has range tombstones.
  std::uint64_t file_bytes = 0;
};

// Adds it to what is ingested, to be moved, or else copied. RocksDB takes its checksum over: it would read the whole
// file for it, with mapped reads in vain.
void add_to(rocksdb::IngestExternalFileArg* argument, const SortedFile& file, bool may_move);

// Writes each part into files `directory`/<name>-<family>.sst, or with free names like it, if its family has a handle
// and was not dropped. Values are read in the order of the logs if that is faster than the order of keys. `stop` ends
// it early with Aborted. A failed attempt removes its files.
rocksdb::Status write_sorted_files(const std::vector<RunPart>& parts, GenerationId name, const ColumnFamilies& families,
                                   ValueReader values, const Store& store, const rocksdb::DBOptions& db_options,
                                   const std::string& directory, const std::atomic<bool>& stop,
                                   std::vector<SortedFile>* files, const SortedProgress& progress = {},
                                   SortedLevel into = {});

}  // namespace spillway::spill
