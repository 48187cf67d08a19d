#include "spill/compat/uniform_db.h"

#include <rocksdb/iterator.h>
#include <rocksdb/utilities/write_batch_with_index.h>

#include <algorithm>
#include <utility>

#include "spill/compat/refusals.h"
#include "spill/compat/refused_iterator.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;

namespace {

#if !SPILLWAY_ROCKSDB_AT_LEAST(10, 0)
constexpr const char* kWhyNotDeleteFile = "older versions of diverted keys would be visible again; use DeleteRange";
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)
constexpr const char* kWhyNotTwoPhases =
    "what is diverted between its two phases would hide the files; use IngestExternalFiles";
#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 6)
bool take_close(rocksdb::WaitForCompactOptions& options) { return std::exchange(options.close_db, false); }
#elif SPILLWAY_ROCKSDB_AT_LEAST(8, 4)
bool take_close(rocksdb::WaitForCompactOptions&) { return false; }
#endif

}  // namespace

// --- Reads

#if !SPILLWAY_ROCKSDB_AT_LEAST(9, 0)

Status UniformDb::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key, PinnableSlice* value) {
  return Get(options, family, key, value, nullptr);
}

std::vector<Status> UniformDb::MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                        const std::vector<Slice>& keys, std::vector<std::string>* values) {
  return multi_get_in_order(options, families, keys, values);
}

std::vector<Status> UniformDb::MultiGet(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                                        const std::vector<Slice>& keys, std::vector<std::string>* values,
                                        std::vector<std::string>* timestamps) {
  if (timestamps == nullptr) return multi_get_in_order(options, families, keys, values);
  values->resize(keys.size());
  return std::vector<Status>(keys.size(), refuse("MultiGet with timestamps", kNoTimestamps));
}

void UniformDb::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, std::size_t count, const Slice* keys,
                         PinnableSlice* values, Status* statuses, bool sorted_input) {
  MultiGet(options, family, count, keys, values, nullptr, statuses, sorted_input);
}

void UniformDb::MultiGet(const ReadOptions& options, ColumnFamilyHandle* family, std::size_t count, const Slice* keys,
                         PinnableSlice* values, std::string* timestamps, Status* statuses, bool sorted_input) {
  std::vector<ColumnFamilyHandle*> families(count, family);
  MultiGet(options, count, families.data(), keys, values, timestamps, statuses, sorted_input);
}

void UniformDb::MultiGet(const ReadOptions& options, std::size_t count, ColumnFamilyHandle** families,
                         const Slice* keys, PinnableSlice* values, Status* statuses, bool sorted_input) {
  MultiGet(options, count, families, keys, values, nullptr, statuses, sorted_input);
}

#endif

// --- Wide columns

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 0)

void UniformDb::MultiGetEntity(const ReadOptions&, ColumnFamilyHandle*, std::size_t count, const Slice*,
                               rocksdb::PinnableWideColumns*, Status* statuses, bool) {
  std::fill_n(statuses, count, refuse("MultiGetEntity", kNoWideColumns));
}

void UniformDb::MultiGetEntity(const ReadOptions&, std::size_t count, ColumnFamilyHandle**, const Slice*,
                               rocksdb::PinnableWideColumns*, Status* statuses, bool) {
  std::fill_n(statuses, count, refuse("MultiGetEntity", kNoWideColumns));
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 8)

void UniformDb::MultiGetEntity(const ReadOptions&, std::size_t count, const Slice*,
                               rocksdb::PinnableAttributeGroups* results) {
  for (std::size_t i = 0; i < count; ++i) {
    for (auto& group : results[i]) group.SetStatus(refuse("MultiGetEntity", kNoWideColumns));
  }
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 9)

Status UniformDb::PutEntity(const rocksdb::WriteOptions&, const Slice&, const rocksdb::AttributeGroups&) {
  return refuse("PutEntity", kNoWideColumns);
}

Status UniformDb::GetEntity(const ReadOptions&, const Slice&, rocksdb::PinnableAttributeGroups* result) {
  for (auto& group : *result) group.SetStatus(refuse("GetEntity", kNoWideColumns));
  return refuse("GetEntity", kNoWideColumns);
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 2)

std::unique_ptr<rocksdb::Iterator> UniformDb::NewCoalescingIterator(const ReadOptions&,
                                                                    const std::vector<ColumnFamilyHandle*>&) {
  return std::unique_ptr<rocksdb::Iterator>(rocksdb::NewErrorIterator(refuse("NewCoalescingIterator", kNoWideColumns)));
}

std::unique_ptr<rocksdb::AttributeGroupIterator> UniformDb::NewAttributeGroupIterator(
    const ReadOptions&, const std::vector<ColumnFamilyHandle*>&) {
  return refused_groups(refuse("NewAttributeGroupIterator", kNoWideColumns));
}

#elif SPILLWAY_ROCKSDB_AT_LEAST(9, 1)

std::unique_ptr<rocksdb::Iterator> UniformDb::NewMultiCfIterator(const ReadOptions&,
                                                                 const std::vector<ColumnFamilyHandle*>&) {
  return std::unique_ptr<rocksdb::Iterator>(rocksdb::NewErrorIterator(refuse("NewMultiCfIterator", kNoWideColumns)));
}

#endif

// --- Scans of several ranges

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 6)

std::unique_ptr<rocksdb::MultiScan> UniformDb::NewMultiScan(const ReadOptions& options, ColumnFamilyHandle* family,
                                                            const rocksdb::MultiScanArgs& ranges) {
  return std::make_unique<rocksdb::MultiScan>(options, ranges, this, family);
}

#elif SPILLWAY_ROCKSDB_AT_LEAST(10, 1)

std::unique_ptr<rocksdb::MultiScan> UniformDb::NewMultiScan(const ReadOptions& options, ColumnFamilyHandle* family,
                                                            const std::vector<rocksdb::ScanOptions>& ranges) {
#if SPILLWAY_ROCKSDB_AT_LEAST(10, 5)
  return std::make_unique<rocksdb::MultiScan>(options, ranges, this, family);
#else
  return std::make_unique<rocksdb::MultiScan>(ranges, std::unique_ptr<rocksdb::Iterator>(NewIterator(options, family)));
#endif
}

#endif

// --- Writes

#if SPILLWAY_ROCKSDB_AT_LEAST(9, 4)

Status UniformDb::WriteWithCallback(const rocksdb::WriteOptions&, rocksdb::WriteBatch*, rocksdb::UserWriteCallback*) {
  return refuse("WriteWithCallback", "its callback is called for RocksDB's log, in which diverted writes are not");
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 2)

Status UniformDb::IngestWriteBatchWithIndex(const rocksdb::WriteOptions& options,
                                            std::shared_ptr<rocksdb::WriteBatchWithIndex> batch) {
  if (!options.disableWAL) return Status::NotSupported("IngestWriteBatchWithIndex does not support disableWAL=false");
  return Write(options, batch == nullptr ? nullptr : batch->GetWriteBatch());
}

#endif

// --- Files

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 0)
#elif SPILLWAY_ROCKSDB_AT_LEAST(9, 11)

Status UniformDb::DEPRECATED_DeleteFile(std::string) { return refuse("DEPRECATED_DeleteFile", kWhyNotDeleteFile); }

#else

Status UniformDb::DeleteFile(std::string) { return refuse("DeleteFile", kWhyNotDeleteFile); }

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 8)

void UniformDb::GetColumnFamilyMetaData(ColumnFamilyHandle* family,
                                        const rocksdb::GetColumnFamilyMetaDataOptions& options,
                                        rocksdb::ColumnFamilyMetaData* metadata) {
  list_files([&] { db_->GetColumnFamilyMetaData(family, options, metadata); });
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(11, 5)

Status UniformDb::PrepareFileIngestion(const std::vector<rocksdb::IngestExternalFileArg>&,
                                       std::unique_ptr<rocksdb::FileIngestionHandle>*) {
  return refuse("PrepareFileIngestion", kWhyNotTwoPhases);
}

Status UniformDb::CommitFileIngestionHandles(std::vector<std::unique_ptr<rocksdb::FileIngestionHandle>>) {
  return refuse("CommitFileIngestionHandles", kWhyNotTwoPhases);
}

#endif

// --- Column families and options

Status UniformDb::CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                               const rocksdb::ImportColumnFamilyOptions& import_options,
                                               const rocksdb::ExportImportFilesMetaData& metadata,
                                               ColumnFamilyHandle** handle) {
  return create_column_family_with_import({name, options}, import_options, {&metadata}, handle);
}

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 4)

Status UniformDb::CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                                               const rocksdb::ImportColumnFamilyOptions& import_options,
                                               const std::vector<const rocksdb::ExportImportFilesMetaData*>& metadata,
                                               ColumnFamilyHandle** handle) {
  return create_column_family_with_import({name, options}, import_options, metadata, handle);
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 11)

Status UniformDb::SetOptions(const std::unordered_map<ColumnFamilyHandle*, OptionsByName>& options) {
  if (options.empty()) return Status::InvalidArgument("empty input");
  for (const auto& [family, settings] : options) {
    if (Status status = SetOptions(family, settings); !status.ok()) return status;
  }
  return {};
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 3)

Status UniformDb::ClipColumnFamily(ColumnFamilyHandle*, const Slice&, const Slice&) {
  return refuse("ClipColumnFamily", "it would write to RocksDB past the spill store; use DeleteRange and CompactRange");
}

#endif

#if SPILLWAY_ROCKSDB_AT_LEAST(10, 2)

Status UniformDb::GetNewestUserDefinedTimestamp(ColumnFamilyHandle*, std::string*) {
  return refuse("GetNewestUserDefinedTimestamp", kNoTimestamps);
}

#endif

// --- Waiting

#if SPILLWAY_ROCKSDB_AT_LEAST(8, 4)

Status UniformDb::WaitForCompact(const rocksdb::WaitForCompactOptions& options) {
  if (Status status = settle(options.abort_on_pause); !status.ok()) return status;
  rocksdb::WaitForCompactOptions for_main = options;
  const bool closes = take_close(for_main);  // there is more to close than RocksDB
  const Status status = db_->WaitForCompact(for_main);
  return status.ok() && closes ? Close() : status;
}

#endif

}  // namespace spillway::spill
