#include "spill/store/region/log_files.h"

#include <utility>

#include "base/steps.h"

namespace spillway::spill {

using rocksdb::IOStatus;
using rocksdb::Status;

namespace {

rocksdb::FileOptions file_options() {
  rocksdb::FileOptions options;
  options.use_mmap_reads = false;        // a map ends where the file ended when it was opened
  options.use_mmap_writes = false;       // what was appended is the kernel's, not this process's, when append returns
  options.strict_bytes_per_sync = true;  // RangeSync waits, so that it shows how fast the drive is
  return options;
}

Status write_copy(const RegionDirectory& directory, const RegionLog& log, const std::string& path) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (IOStatus status = directory.files().NewWritableFile(path, file_options(), &file, nullptr); !status.ok()) {
    return status;
  }
  std::string piece = encode_log_header(log.name);
  LogReader reader(*log.reader, log.name, log.bytes);
  for (;;) {
    const LogReader::Next next = reader.next();
    if (next == LogReader::Next::error) return reader.status();
    if (next == LogReader::Next::torn) return damaged(log, reader.offset());
    if (next == LogReader::Next::record) piece.append(reader.frame().data(), reader.frame().size());
    if (piece.size() < kScanReadBytes && next != LogReader::Next::end) continue;
    if (IOStatus status = file->Append(piece, {}, nullptr); !status.ok()) return status;
    piece.clear();
    if (next == LogReader::Next::end) break;
  }
  if (IOStatus status = file->Sync({}, nullptr); !status.ok()) return status;
  return file->Close({}, nullptr);
}

}  // namespace

Status open_reader(const RegionDirectory& directory, RegionLog& log) {
  return directory.files().NewRandomAccessFile(log.path(), file_options(), &log.reader, nullptr);
}

Status create_empty_log(const RegionDirectory& directory, const RegionLog& log,
                        std::unique_ptr<rocksdb::FSWritableFile>* file) {
  IOStatus status = directory.files().NewWritableFile(log.path(), file_options(), file, nullptr);
  if (!status.ok()) return status;
  const rocksdb::DirFsyncOptions why(rocksdb::DirFsyncOptions::kNewFileSynced);
  return directory.sync(why);
}

Status create_log(const RegionDirectory& directory, std::uint64_t preallocation, RegionLog& log,
                  std::unique_ptr<rocksdb::FSWritableFile>* file) {
  if (*file == nullptr) {
    if (Status status = create_empty_log(directory, log, file); !status.ok()) return status;
  }
  (*file)->SetPreallocationBlockSize(preallocation);
  if (IOStatus status = (*file)->Append(encode_log_header(log.name), {}, nullptr); !status.ok()) return status;
  steps::reached("spill.region.begin.created");
  return open_reader(directory, log);
}

// Through the open file: RocksDB's own file system truncates no other.
IOStatus reopen_truncated(const RegionDirectory& directory, const RegionLog& log,
                          std::unique_ptr<rocksdb::FSWritableFile>* file) {
  IOStatus status = directory.files().ReopenWritableFile(log.path(), file_options(), file, nullptr);
  return status.ok() ? (*file)->Truncate(log.bytes, {}, nullptr) : status;
}

IOStatus truncate_durably(const RegionDirectory& directory, const RegionLog& log) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = reopen_truncated(directory, log, &file);
  steps::reached("spill.region.cut.truncated");
  if (status.ok()) status = file->Fsync({}, nullptr);
  if (status.ok()) status = file->Close({}, nullptr);
  return status;
}

IOStatus sync_log(const RegionDirectory& directory, const RegionLog& log) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  IOStatus status = directory.files().ReopenWritableFile(log.path(), file_options(), &file, nullptr);
  if (status.ok()) status = file->Fsync({}, nullptr);
  if (status.ok()) status = file->Close({}, nullptr);
  return status;
}

Status replace_by_copy(const RegionDirectory& directory, const RegionLog& log, std::shared_ptr<RegionLog>* copy) {
  auto made = std::make_shared<RegionLog>();
  made->name = log.name;
  made->base = log.base;
  const std::string temporary = log.path() + kCopy;
  if (Status status = write_copy(directory, log, temporary); !status.ok()) return status;
  if (IOStatus status = directory.files().RenameFile(temporary, made->path(), {}, nullptr); !status.ok()) return status;
  if (Status synced = directory.sync(rocksdb::DirFsyncOptions(made->path())); !synced.ok()) return synced;
  if (Status opened = open_reader(directory, *made); !opened.ok()) return opened;
  made->bytes.store(log.bytes);
  *copy = std::move(made);
  return {};
}

}  // namespace spillway::spill
