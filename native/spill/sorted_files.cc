#include "spill/sorted_files.h"

#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <map>

namespace spillway::spill {
namespace {

// What one family gets: its entries sorted, newest version first.
using ByFamily = std::map<std::uint32_t, SortedRun>;

ByFamily sorted_by_family(const Generation& generation, const ColumnFamilies& families) {
  SortedRun all;
  all.reserve(generation.entries());
  generation.for_each([&](const Entry& entry) { all.push_back(&entry); });
  std::sort(all.begin(), all.end(), EntryOrder(families));
  ByFamily by_family;
  for (const Entry* entry : all) by_family[entry->column_family].push_back(entry);
  for (const RangeTombstone& tombstone : generation.range_tombstones()) by_family[tombstone.column_family];
  return by_family;
}

rocksdb::Status write_entries(const Generation& generation, const SortedRun& entries, ValueReader values,
                              const std::atomic<bool>& stop, rocksdb::SstFileWriter& writer) {
  const Entry* last = nullptr;
  for (const Entry* entry : entries) {
    if (stop.load(std::memory_order_acquire)) return rocksdb::Status::Aborted("the database is being closed");
    if (last != nullptr && last->key() == entry->key()) continue;  // an older version
    last = entry;
    if (generation.covering_tombstone(entry->column_family, entry->key(), ~Sequence{0}) > entry->sequence) continue;
    rocksdb::Status status;
    if (entry->kind == Kind::remove) {
      status = writer.Delete(entry->key());
    } else {
      std::string value;
      status = values.read(*entry, &value);
      if (status.ok()) status = writer.Put(entry->key(), value);
    }
    if (!status.ok()) return status;
  }
  return {};
}

rocksdb::Status write_one(const Generation& generation, const ColumnFamily& family, const SortedRun& entries,
                          ValueReader values, const rocksdb::DBOptions& db_options, const std::atomic<bool>& stop,
                          SortedFile& file) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  rocksdb::Status status = family.handle->GetDescriptor(&descriptor);
  if (!status.ok()) return status;
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(db_options), rocksdb::Options(db_options, descriptor.options),
                                family.handle);
  status = writer.Open(file.path);
  if (status.ok()) status = write_entries(generation, entries, values, stop, writer);
  for (const RangeTombstone& one : generation.range_tombstones()) {
    if (status.ok() && one.column_family == family.id) status = writer.DeleteRange(one.begin, one.end);
  }
  rocksdb::ExternalSstFileInfo info;
  if (status.ok()) status = writer.Finish(&info);
  file.entries = info.num_entries;
  file.bytes = info.file_size;
  return status;
}

}  // namespace

rocksdb::Status write_sorted_files(const Generation& generation, const ColumnFamilies& families, ValueReader values,
                                   const Store& /*store*/, const rocksdb::DBOptions& db_options,
                                   const std::string& directory, const std::atomic<bool>& stop,
                                   std::vector<SortedFile>* files) {
  files->clear();
  for (const auto& [id, entries] : sorted_by_family(generation, families)) {
    const ColumnFamily family = families.of(id);
    if (family.handle == nullptr) continue;
    SortedFile file;
    file.column_family = id;
    file.path = directory + "/" + std::to_string(generation.id()) + "-" + std::to_string(id) + ".sst";
    const rocksdb::Status status = write_one(generation, family, entries, values, db_options, stop, file);
    files->push_back(file);
    if (status.ok()) continue;
    for (const SortedFile& one : *files) (void)db_options.env->DeleteFile(one.path);
    files->clear();
    return status;
  }
  return {};
}

}  // namespace spillway::spill
