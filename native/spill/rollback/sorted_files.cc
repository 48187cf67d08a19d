#include "spill/rollback/sorted_files.h"

#include <rocksdb/file_checksum.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <unordered_set>
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
// While nobody writes they are so many batches, and the next is begun when the oldest is done, so that the drive does
// not wait for the last of them all. Source: docs/decisions/0056
constexpr std::size_t kBatchesAlone = 4;
// What a read by itself costs besides its bytes, in bytes of a scan. Source: between 4 and 15 KB on the presets'
// drives, random reads of 4 KiB at iodepth 256 beside sequential ones of 512 KiB (spillway ssd simulate)
constexpr std::uint64_t kReadBytes = 8192;
// What a record adds to the key and the value of one put, framing included. Source: record.h, log_frame.h and
// RocksDB's write batch, rounded up.
constexpr std::uint64_t kRecordOverheadBytes = 56;

using Entries = std::span<const Entry* const>;

Status stopped() { return Status::Aborted("the rollback was stopped"); }

// Whether to read values by scans of whole logs, each of which fills the buffer, instead of in parallel in the order
// of keys, each of which costs more than its bytes.
bool scans_are_cheaper(Entries entries) {
  std::uint64_t value_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t log_bytes = 0;
  std::unordered_set<const Generation*> logs;
  for (const Entry* entry : entries) {
    value_bytes += entry->value.length;
    read_bytes += entry->value.length + kReadBytes;
    const Generation& of = *entry->generation;
    if (logs.insert(&of).second) log_bytes += of.user_bytes() + of.entries() * kRecordOverheadBytes;
  }
  const std::uint64_t scans = value_bytes / kBufferBytes + 1;
  return scans * log_bytes <= read_bytes;
}

// Iterates over the values of entries in the order of keys.
class Values {
 public:
  Values(ValueReader reader, const Store& store, const std::atomic<bool>& stop, const SortedProgress& progress,
         Entries entries)
      : reader_(reader),
        store_(store),
        stop_(stop),
        progress_(progress),
        entries_(entries),
        scans_(scans_are_cheaper(entries)) {}

  ~Values() {
    for (const auto& batch : ahead_) batch->wait();
  }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  // The value of the entry at `at`. REQUIRES: called in this order, once for each
  Status next(std::size_t at, Slice* value) {
    if (at >= end_) {
      begin_ = at;
      if (Status status = scans_ ? fill_by_scan() : fill_by_reads(); !status.ok()) return status;
    }
    if (scans_) {
      *value = Slice(buffer_.get() + places_[at - begin_], entries_[at]->value.length);
      return Status::OK();
    }
    if (entries_[at]->kind != Kind::put) return Status::OK();
    const ReadRequest& answer = *answer_++;
    *value = Slice(answer.bytes);
    return answer.status;
  }

 private:
  struct Batch {
    std::size_t end = 0;             // of its entries
    std::vector<ReadRequest> reads;  // of puts
    std::unique_ptr<ReadsInFlight> in_flight;
    void wait() {
      if (in_flight) std::exchange(in_flight, nullptr)->wait();
    }
  };

  // Waits for the reads of the batch that begins here, and begins those of others: the drive reads while the file is
  // written.
  Status fill_by_reads() {
    if (ahead_.empty()) begin_reads();
    current_ = std::move(ahead_.front());
    ahead_.pop_front();
    current_->wait();
    end_ = current_->end;
    answer_ = current_->reads.begin();
    begin_reads();
    return Status::OK();
  }

  void begin_reads() {
    const std::size_t batches = progress_.may_take_drive && progress_.may_take_drive() ? kBatchesAlone : 1;
    while (ahead_.size() < batches && read_to_ < entries_.size()) {
      Batch& batch = *ahead_.emplace_back(std::make_unique<Batch>());
      batch.end = std::min(read_to_ + kReadsTogether / batches, entries_.size());
      for (; read_to_ < batch.end; ++read_to_) {
        const Entry& entry = *entries_[read_to_];
        if (entry.kind == Kind::put) batch.reads.push_back(ValueReader::request(entry));
      }
      if (!batch.reads.empty()) batch.in_flight = reader_.begin_reads(batch.reads);
    }
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
    std::map<GenerationId, std::vector<std::size_t>> by_log;
    for (std::size_t i = begin_; i < end_; ++i) {
      if (entries_[i]->kind == Kind::put) by_log[entries_[i]->generation->id()].push_back(i);
    }
    Status status;
    for (auto& [generation, wanted] : by_log) {
      if (status.ok()) status = scan(generation, std::move(wanted));
    }
    return status;
  }

  // Copies the values of these entries, all of one generation, into the buffer.
  Status scan(GenerationId generation, std::vector<std::size_t> wanted) {
    std::sort(wanted.begin(), wanted.end(),
              [&](std::size_t a, std::size_t b) { return entries_[a]->value.offset < entries_[b]->value.offset; });
    auto next = wanted.begin();
    const auto take = [&](const StoredRecord& record) {
      if (stop_.load(std::memory_order_relaxed)) return stopped();
      for (; next != wanted.end() && entries_[*next]->value.offset == record.offset; ++next) {
        const Location& place = entries_[*next]->value;
        if (place.from + std::uint64_t{place.length} > record.bytes.size()) return missing(generation);
        if (place.length == 0) continue;  // there may be no buffer
        std::memcpy(buffer_.get() + places_[*next - begin_], record.bytes.data() + place.from, place.length);
      }
      return next == wanted.end() ? Status::Incomplete() : Status::OK();  // all there: the rest is not read
    };
    const Status status = store_.scan(generation, take);
    if (next == wanted.end()) return Status::OK();
    return status.ok() ? missing(generation) : status;
  }

  static Status missing(GenerationId generation) {
    return Status::Corruption("a value of generation " + std::to_string(generation) + " is not in the spill store");
  }

  ValueReader reader_;
  const Store& store_;
  const std::atomic<bool>& stop_;
  const SortedProgress& progress_;
  const Entries entries_;
  const bool scans_;

  // Of the entries [begin_, end_).
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::unique_ptr<Batch> current_;
  std::vector<ReadRequest>::const_iterator answer_;
  // Of the entries [end_, read_to_).
  std::deque<std::unique_ptr<Batch>> ahead_;
  std::size_t read_to_ = 0;
  std::vector<std::uint64_t> places_;
  std::unique_ptr<char[]> buffer_;
  std::uint64_t buffer_bytes_ = 0;
};

// The family's options, with what the files of that level have where levels differ.
Status options_of(rocksdb::ColumnFamilyHandle* handle, const rocksdb::DBOptions& db_options, SortedLevel into,
                  rocksdb::Options* options) {
  rocksdb::ColumnFamilyDescriptor descriptor;
  if (Status status = handle->GetDescriptor(&descriptor); !status.ok()) return status;
  rocksdb::ColumnFamilyOptions& family = descriptor.options;
  if (const auto& each = family.compression_per_level; !each.empty()) {
    const auto place = static_cast<std::size_t>(into.level == 0 ? 0 : into.level - into.base + 1);
    family.compression = each[std::min(place, each.size() - 1)];
  }
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

bool has_empty_bound(const RunPart& part) {
  if (!part.entries.empty() && (part.entries.front()->key().empty() || part.entries.back()->key().empty())) {
    return true;
  }
  return std::ranges::any_of(part.deleted, [](const KeyRange& range) { return range.begin.empty(); });
}

// RocksDB 9's writer asserts, where it is built with assertions as Debian 13's is, that the first and the last key of
// what it describes are both empty or neither. Without a description, RocksDB computes a checksum when it ingests.
Status finish(rocksdb::SstFileWriter& writer, const RunPart& part, SortedFile* file) {
  file->entries = part.entries.size();
  rocksdb::ExternalSstFileInfo info;
  const Status status = writer.Finish(has_empty_bound(part) ? nullptr : &info);
  file->bytes = writer.FileSize();
  if (!info.file_checksum_func_name.empty() && info.file_checksum_func_name != rocksdb::kUnknownFileChecksumFuncName) {
    file->checksum = info.file_checksum;
    file->checksum_name = info.file_checksum_func_name;
  }
  return status;
}

class Written {
 public:
  explicit Written(const SortedProgress& progress) : progress_(progress) {}
  void add(std::uint64_t bytes) {
    bytes_ += bytes;
    if (!progress_.on_written || bytes_ - told_ < kTold) return;
    progress_.on_written(bytes_);
    told_ = bytes_;
  }

 private:
  static constexpr std::uint64_t kTold = 1 << 20;

  const SortedProgress& progress_;
  std::uint64_t bytes_ = 0;
  std::uint64_t told_ = 0;
};

// `values`: of the part and what precedes it, `first` entries.
Status write_file(const ColumnFamily& family, const RunPart& part, Values& values, std::size_t first,
                  const rocksdb::DBOptions& db_options, SortedLevel into, const std::atomic<bool>& stop,
                  Written* written, SortedFile* file) {
  rocksdb::Options options;
  if (Status status = options_of(family.handle, db_options, into, &options); !status.ok()) return status;
  rocksdb::EnvOptions env_options(db_options);
  env_options.use_direct_writes = db_options.use_direct_io_for_flush_and_compaction;
  // What is written is about to be compacted, and takes the place of a flush: it stays in the page cache, and a rate
  // limiter lets it pass as it would let a flush.
  rocksdb::SstFileWriter writer(env_options, options, family.handle, /*invalidate_page_cache=*/false,
                                rocksdb::Env::IO_HIGH);
  if (Status status = writer.Open(file->path); !status.ok()) return status;
  for (std::size_t i = 0; i < part.entries.size(); ++i) {
    if (stop.load(std::memory_order_relaxed)) return stopped();
    const Entry& entry = *part.entries[i];
    Slice value;
    Status status = values.next(first + i, &value);
    if (status.ok()) {
      status = entry.kind == Kind::put ? writer.Put(entry.key(), value) : writer.Delete(entry.key());
    }
    if (!status.ok()) return status;
    written->add(entry.key_bytes + value.size());
  }
  for (const KeyRange& range : part.deleted) {
    if (Status status = writer.DeleteRange(range.begin, range.end); !status.ok()) return status;
  }
  Status status = finish(writer, part, file);
  if (!status.ok() || part.entries.empty()) return status;
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

Status write_sorted_files(const std::vector<RunPart>& parts, GenerationId name, const ColumnFamilies& families,
                          ValueReader values, const Store& store, const rocksdb::DBOptions& db_options,
                          const std::string& directory, const std::atomic<bool>& stop, std::vector<SortedFile>* files,
                          const SortedProgress& progress, SortedLevel into) {
  files->clear();
  Written written(progress);
  Status status;
  for (const RunPart& part : parts) {
    const UsedColumnFamily family = families.use(part.column_family);
    if (family.is_dropped) continue;  // since the rollback began
    if (status = check_handle(family); !status.ok()) break;
    Values of_part(values, store, stop, progress, part.entries);
    std::size_t first = 0;
    for (const RunPart& of_file : into.file_bytes > 0 ? split(part, into.file_bytes) : std::vector{part}) {
      SortedFile& file = files->emplace_back();
      file.column_family = part.column_family;
      file.path = free_path(directory, name, part.column_family, *db_options.env);
      status = write_file(family, of_file, of_part, first, db_options, into, stop, &written, &file);
      if (!status.ok()) break;
      first += of_file.entries.size();
    }
    if (!status.ok()) break;
  }
  if (status.ok()) return status;
  for (const SortedFile& file : *files) (void)db_options.env->DeleteFile(file.path);
  files->clear();
  return status;
}

}  // namespace spillway::spill
