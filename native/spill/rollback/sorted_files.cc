#include "spill/rollback/sorted_files.h"

#include <rocksdb/file_checksum.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "spill/main_db/temporary_tables.h"

namespace spillway::spill {

using rocksdb::Slice;
using rocksdb::Status;

namespace {

// Memory for values that are written to a file. Source: a memtable of RocksDB's default size, which the file replaces.
constexpr std::uint64_t kBufferBytes = 64 << 20;
// Values that are read in parallel in the order of keys. Source: guess, deeper than a drive is wide.
constexpr std::size_t kReadsTogether = 256;
// What a read by itself moves at least. Source: pages of the kernel and of most drives.
constexpr std::uint64_t kPageBytes = 4096;
// What a record adds to the key and the value of one put, framing included. Source: record.h, log_frame.h and
// RocksDB's write batch, rounded up.
constexpr std::uint64_t kRecordOverheadBytes = 56;

using Entries = std::vector<const Entry*>;
struct KeyRange {
  std::string begin;
  std::string end;
};

// What goes into one file.
struct Contents {
  Entries entries;  // in the order of keys, one for each
  std::vector<KeyRange> deleted;
};

Status stopped() { return Status::Aborted("the rollback was stopped"); }

// The newest version up to `up_to` of each key of a family that was not dropped.
std::map<std::uint32_t, Contents> contents_of(const Generation& generation, Sequence up_to,
                                              const ColumnFamilies& families, const IsSuperseded& is_superseded) {
  Entries all;
  for (const auto& run : generation.sorted_runs(up_to)) {
    const auto middle = static_cast<Entries::difference_type>(all.size());
    all.insert(all.end(), run->begin(), run->end());
    std::inplace_merge(all.begin(), all.begin() + middle, all.end(), EntryOrder(families));
  }
  std::map<std::uint32_t, Contents> contents;
  const bool has_tombstones = generation.has_range_tombstones();
  const Entry* last = nullptr;
  Contents* of_family = nullptr;
  for (const Entry* entry : all) {
    if (entry->sequence > up_to) continue;
    const bool same_family = last != nullptr && last->column_family == entry->column_family;
    const bool same_key = same_family && last->key() == entry->key();
    last = entry;
    if (same_key) continue;
    if (!same_family) {
      of_family = families.of(entry->column_family).is_dropped ? nullptr : &contents[entry->column_family];
    }
    if (of_family == nullptr) continue;
    if (has_tombstones && generation.covering_tombstone(entry->column_family, entry->key(), up_to) > entry->sequence) {
      continue;
    }
    if (is_superseded(*entry)) continue;
    of_family->entries.push_back(entry);
  }
  for (const RangeTombstone& tombstone : generation.range_tombstones()) {
    if (tombstone.sequence > up_to || families.of(tombstone.column_family).is_dropped) continue;
    contents[tombstone.column_family].deleted.push_back({tombstone.begin, tombstone.end});
  }
  return contents;
}

// Their union, in order: in a file that is ingested all have the same sequence number.
std::vector<KeyRange> joined(std::vector<KeyRange> ranges, const rocksdb::Comparator& order) {
  std::erase_if(ranges, [&](const KeyRange& range) { return order.Compare(range.begin, range.end) >= 0; });
  std::sort(ranges.begin(), ranges.end(),
            [&](const KeyRange& a, const KeyRange& b) { return order.Compare(a.begin, b.begin) < 0; });
  std::vector<KeyRange> result;
  for (KeyRange& range : ranges) {
    if (result.empty() || order.Compare(result.back().end, range.begin) < 0) {
      result.push_back(std::move(range));
    } else if (order.Compare(result.back().end, range.end) < 0) {
      result.back().end = std::move(range.end);
    }
  }
  return result;
}

// Whether to read values by scans of the whole log, each of which fills the buffer, instead of in parallel in the order
// of keys, which transfers whole pages for each value.
bool scans_are_cheaper(const Entries& entries, std::uint64_t log_bytes) {
  std::uint64_t value_bytes = 0;
  std::uint64_t page_bytes = 0;
  for (const Entry* entry : entries) {
    value_bytes += entry->value.length;
    page_bytes += entry->value.length + kPageBytes;  // it begins anywhere within a page
  }
  const std::uint64_t scans = value_bytes / kBufferBytes + 1;
  return scans * log_bytes <= page_bytes;
}

// Iterates over the values of entries in the order of keys.
class Values {
 public:
  Values(const Generation& generation, ValueReader reader, const Store& store, const std::atomic<bool>& stop,
         const Entries& entries)
      : generation_(generation),
        reader_(reader),
        store_(store),
        stop_(stop),
        entries_(entries),
        scans_(scans_are_cheaper(entries, generation.user_bytes() + generation.entries() * kRecordOverheadBytes)) {}

  // The value of the entry at `at`. REQUIRES: called in this order, once for each
  Status next(std::size_t at, Slice* value) {
    if (at >= end_) {
      begin_ = at;
      if (Status status = scans_ ? fill_by_scan() : fill_by_reads(); !status.ok()) return status;
    }
    *value = scans_ ? Slice(buffer_.get() + places_[at - begin_], entries_[at]->value.length)
                    : Slice(reads_[at - begin_].bytes);
    return scans_ ? Status::OK() : reads_[at - begin_].status;
  }

 private:
  Status fill_by_reads() {
    end_ = std::min(begin_ + kReadsTogether, entries_.size());
    reads_.resize(end_ - begin_);
    std::vector<ReadRequest> asked;
    for (std::size_t i = begin_; i < end_; ++i) {
      if (entries_[i]->kind == Kind::put) asked.push_back(ValueReader::request(*entries_[i]));
    }
    reader_.read_many(asked);
    auto answer = asked.begin();
    for (std::size_t i = begin_; i < end_; ++i) {
      reads_[i - begin_] = entries_[i]->kind == Kind::put ? std::move(*answer++) : ReadRequest{};
    }
    return Status::OK();
  }

  // Takes as many entries as the buffer has room for, and one scan for all of them.
  Status fill_by_scan() {
    std::uint64_t bytes = 0;
    places_.clear();
    for (end_ = begin_; end_ < entries_.size(); ++end_) {
      const std::uint64_t length = entries_[end_]->value.length;
      if (bytes + length > kBufferBytes && end_ > begin_) break;
      places_.push_back(bytes);
      bytes += length;
    }
    if (buffer_bytes_ < bytes) buffer_ = std::make_unique_for_overwrite<char[]>(buffer_bytes_ = bytes);
    std::vector<std::size_t> in_log_order;
    for (std::size_t i = begin_; i < end_; ++i) {
      if (entries_[i]->kind == Kind::put) in_log_order.push_back(i);
    }
    std::sort(in_log_order.begin(), in_log_order.end(),
              [&](std::size_t a, std::size_t b) { return entries_[a]->value.offset < entries_[b]->value.offset; });
    auto next = in_log_order.begin();
    const auto take = [&](const StoredRecord& record) {
      if (stop_.load(std::memory_order_relaxed)) return stopped();
      for (; next != in_log_order.end() && entries_[*next]->value.offset == record.offset; ++next) {
        const Location& place = entries_[*next]->value;
        if (place.from + std::uint64_t{place.length} > record.bytes.size()) return missing();
        if (place.length == 0) continue;  // there may be no buffer
        std::memcpy(buffer_.get() + places_[*next - begin_], record.bytes.data() + place.from, place.length);
      }
      return next == in_log_order.end() ? Status::Incomplete() : Status::OK();  // all there: the rest is not read
    };
    if (next == in_log_order.end()) return Status::OK();
    const Status status = store_.scan(generation_.id(), take);
    if (next == in_log_order.end()) return Status::OK();
    return status.ok() ? missing() : status;
  }

  Status missing() const {
    return Status::Corruption("a value of generation " + std::to_string(generation_.id()) +
                              " is not in the spill store");
  }

  const Generation& generation_;
  ValueReader reader_;
  const Store& store_;
  const std::atomic<bool>& stop_;
  const Entries& entries_;
  const bool scans_;

  // Of the entries [begin_, end_).
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::vector<ReadRequest> reads_;
  std::vector<std::uint64_t> places_;
  std::unique_ptr<char[]> buffer_;
  std::uint64_t buffer_bytes_ = 0;
};

// The family's options, with what its L0 files have where levels differ.
Status options_of(rocksdb::ColumnFamilyHandle* handle, const rocksdb::DBOptions& db_options,
                  rocksdb::Options* options) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  if (Status status = handle->GetDescriptor(&descriptor); !status.ok()) return status;
  rocksdb::ColumnFamilyOptions& family = descriptor.options;
  if (!family.compression_per_level.empty()) family.compression = family.compression_per_level.front();
  family.compression_per_level.clear();
  family.bottommost_compression = rocksdb::kDisableCompressionOption;
  *options = rocksdb::Options(db_options, family);
  return Status::OK();
}

// RocksDB does not see what is wrong with a file that it ingests, see guarded_env.h: a first key that does not fit its
// checksum would have it believe that there are none.
Status check_first_key(const std::string& path, const rocksdb::Options& options) {
  rocksdb::SstFileReader reader(options);
  if (Status status = reader.Open(path); !status.ok()) return status;
  rocksdb::ReadOptions once;
  once.fill_cache = false;
  once.max_skippable_internal_keys = 1;  // where the first are deletions, the next put is not looked for
  const std::unique_ptr<rocksdb::Iterator> keys(reader.NewIterator(once));
  keys->SeekToFirst();
  const Status status = keys->status();
  return status.IsIncomplete() ? Status::OK() : status;
}

bool has_empty_bound(const Contents& contents) {
  if (!contents.entries.empty() &&
      (contents.entries.front()->key().empty() || contents.entries.back()->key().empty())) {
    return true;
  }
  return std::ranges::any_of(contents.deleted, [](const KeyRange& range) { return range.begin.empty(); });
}

// RocksDB 9's writer asserts, where it is built with assertions as Debian 13's is, that the first and the last key of
// what it describes are both empty or neither. Without a description, RocksDB computes a checksum when it ingests.
Status finish(rocksdb::SstFileWriter& writer, const Contents& contents, SortedFile* file) {
  file->entries = contents.entries.size();
  rocksdb::ExternalSstFileInfo info;
  const Status status = writer.Finish(has_empty_bound(contents) ? nullptr : &info);
  file->bytes = writer.FileSize();
  if (!info.file_checksum_func_name.empty() && info.file_checksum_func_name != rocksdb::kUnknownFileChecksumFuncName) {
    file->checksum = info.file_checksum;
    file->checksum_name = info.file_checksum_func_name;
  }
  return status;
}

Status write_file(const Generation& generation, const ColumnFamily& family, const Contents& contents,
                  ValueReader reader, const Store& store, const rocksdb::DBOptions& db_options,
                  const std::atomic<bool>& stop, SortedFile* file) {
  rocksdb::Options options;
  if (Status status = options_of(family.handle, db_options, &options); !status.ok()) return status;
  rocksdb::EnvOptions env_options(db_options);
  env_options.use_direct_writes = db_options.use_direct_io_for_flush_and_compaction;
  // What is written is about to be compacted, and takes the place of a flush: it stays in the page cache, and a rate
  // limiter lets it pass as it would let a flush.
  rocksdb::SstFileWriter writer(env_options, options, family.handle, /*invalidate_page_cache=*/false,
                                rocksdb::Env::IO_HIGH);
  if (Status status = writer.Open(file->path); !status.ok()) return status;
  Values values(generation, reader, store, stop, contents.entries);
  for (std::size_t i = 0; i < contents.entries.size(); ++i) {
    if (stop.load(std::memory_order_relaxed)) return stopped();
    const Entry& entry = *contents.entries[i];
    Slice value;
    Status status = values.next(i, &value);
    if (status.ok()) {
      status = entry.kind == Kind::put ? writer.Put(entry.key(), value) : writer.Delete(entry.key());
    }
    if (!status.ok()) return status;
  }
  for (const KeyRange& range : joined(contents.deleted, *family.comparator)) {
    if (Status status = writer.DeleteRange(range.begin, range.end); !status.ok()) return status;
  }
  Status status = finish(writer, contents, file);
  if (!status.ok() || contents.entries.empty()) return status;
  return check_first_key(file->path, options);
}

// RocksDB has moved a file of an earlier try by a link: where the old name could not be taken away, it is a name of a
// table of RocksDB's, which must not be written to.
std::string free_path(const std::string& directory, GenerationId generation, std::uint32_t column_family,
                      rocksdb::Env& env) {
  std::string path;
  int other = 0;
  do {
    path = directory + "/" + sorted_file_name(generation, column_family, other++);
  } while (env.FileExists(path).ok());
  return path;
}

}  // namespace

void add_to(rocksdb::IngestExternalFileArg* argument, const SortedFile& file, bool may_move) {
  argument->options.move_files = may_move;
  argument->options.write_global_seqno = false;
  const bool have_others = argument->files_checksums.size() == argument->external_files.size();
  argument->external_files.push_back(file.path);
  argument->options.verify_file_checksum = file.checksum_name.empty() || !have_others;  // RocksDB would read it again
  if (argument->options.verify_file_checksum) {  // it takes the checksums of all files or computes those of all
    argument->files_checksums.clear();
    argument->files_checksum_func_names.clear();
    return;
  }
  argument->files_checksums.push_back(file.checksum);
  argument->files_checksum_func_names.push_back(file.checksum_name);
}

Status write_sorted_files(const Generation& generation, Sequence up_to, const ColumnFamilies& families,
                          const IsSuperseded& is_superseded, ValueReader values, const Store& store,
                          const rocksdb::DBOptions& db_options, const std::string& directory,
                          const std::atomic<bool>& stop, std::vector<SortedFile>* files) {
  files->clear();
  Status status;
  for (const auto& [id, contents] : contents_of(generation, up_to, families, is_superseded)) {
    const UsedColumnFamily family = families.use(id);
    if (family.is_dropped) continue;  // since the rollback began
    if (contents.entries.empty() && joined(contents.deleted, *family.comparator).empty()) continue;
    if (status = check_handle(family); !status.ok()) break;
    SortedFile& file = files->emplace_back();
    file.column_family = id;
    file.path = free_path(directory, generation.id(), id, *db_options.env);
    status = write_file(generation, family, contents, values, store, db_options, stop, &file);
    if (!status.ok()) break;
  }
  if (status.ok()) return status;
  for (const SortedFile& file : *files) (void)db_options.env->DeleteFile(file.path);
  files->clear();
  return status;
}

}  // namespace spillway::spill
