// Reads: see read/reader.h.
#include <algorithm>

#include "spill/compat/refusals.h"
#include "spill/db/db_impl.h"

namespace spillway::spill {

using rocksdb::ColumnFamilyHandle;
using rocksdb::PinnableSlice;
using rocksdb::ReadOptions;
using rocksdb::Slice;
using rocksdb::Status;

Status DbImpl::Get(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key, PinnableSlice* value,
                   std::string* timestamp) {
  if (timestamp != nullptr) return refuse("Get with a timestamp", kNoTimestamps);
  return reader_.get(options, family, key, value);
}

std::vector<Status> DbImpl::multi_get_in_order(const ReadOptions& options,
                                               const std::vector<ColumnFamilyHandle*>& families,
                                               const std::vector<Slice>& keys, std::vector<std::string>* values) {
  return reader_.multi_get(options, families, keys, values);
}

void DbImpl::MultiGet(const ReadOptions& options, std::size_t count, ColumnFamilyHandle** families, const Slice* keys,
                      PinnableSlice* values, std::string* timestamps, Status* statuses, bool sorted_input) {
  if (timestamps != nullptr) {
    std::fill_n(statuses, count, refuse("MultiGet with timestamps", kNoTimestamps));
    return;
  }
  reader_.multi_get(options, {count, families, keys, values, statuses}, sorted_input);
}

bool DbImpl::KeyMayExist(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key, std::string* value,
                         bool* value_found) {
  return reader_.key_may_exist(options, family, key, value, value_found);
}

rocksdb::Iterator* DbImpl::NewIterator(const ReadOptions& options, ColumnFamilyHandle* family) {
  return reader_.new_iterator(options, family);
}

Status DbImpl::NewIterators(const ReadOptions& options, const std::vector<ColumnFamilyHandle*>& families,
                            std::vector<rocksdb::Iterator*>* iterators) {
  return reader_.new_iterators(options, families, iterators);
}

const rocksdb::Snapshot* DbImpl::GetSnapshot() { return reader_.get_snapshot(); }
void DbImpl::ReleaseSnapshot(const rocksdb::Snapshot* snapshot) { reader_.release_snapshot(snapshot); }

Status DbImpl::VerifyChecksum(const ReadOptions& options) {
  const Status status = base().VerifyChecksum(options);
  return status.ok() ? reader_.verify_checksums() : status;
}

Status DbImpl::VerifyFileChecksums(const ReadOptions& options) {
  const Status status = base().VerifyFileChecksums(options);
  return status.ok() ? reader_.verify_checksums() : status;
}

}  // namespace spillway::spill
