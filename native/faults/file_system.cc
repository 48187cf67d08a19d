#include "faults/file_system.h"

#include <filesystem>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/async_reads.h"
#include "faults/drive_journal.h"

namespace spillway::faults {

using rocksdb::FileOptions;
using rocksdb::FSReadRequest;
using rocksdb::IODebugContext;
using rocksdb::IOHandleDeleter;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

using Kind = DriveEvent::Kind;

IOStatus to_rocksdb(const Status& status) {
  return status ? IOStatus::OK() : IOStatus::IOError("the fault layer itself failed", status.message());
}

// The journal and the fate, shared by the file system and its files.
class Drive {
 public:
  Drive(std::string root, DriveJournal journal) : root_(std::move(root)), journal_(std::move(journal)) {}

  // The name of a path under the root whose file holds data.
  std::optional<std::string> name_of(const std::string& path) const {
    std::error_code failure;
    const auto absolute = std::filesystem::absolute(path, failure);
    const std::string normal = (failure ? std::filesystem::path(path) : absolute).lexically_normal().string();
    if (!normal.starts_with(root_ + "/")) return std::nullopt;
    std::string name = normal.substr(root_.size() + 1);
    if (name.ends_with('/')) name.pop_back();
    if (!holds_data(name)) return std::nullopt;
    return name;
  }
  bool is_root(const std::string& path) const {
    const auto normal = std::filesystem::path(path).lexically_normal();
    return (normal.has_filename() ? normal : normal.parent_path()) == root_;
  }

  void set_fate(Fate fate) {
    const std::unique_lock lock(fate_mutex_);
    fate_ = fate ? std::make_shared<const Fate>(std::move(fate)) : nullptr;
  }

  void cut_power() {
    const std::unique_lock lock(journal_mutex_);
    off_ = true;
  }

  Misfortune befalls(Action action, const std::string& name, std::uint64_t bytes, std::uint64_t grows = 0) {
    std::shared_ptr<const Fate> fate;
    {
      const std::shared_lock lock(fate_mutex_);
      fate = fate_;
    }
    if (!fate) return {};
    Deed deed{.action = action, .name = name, .bytes = bytes};
    if (action == Action::write) {
      const std::unique_lock lock(journal_mutex_);
      deed.bytes_after = journal_.files().used_bytes() + grows;
    }
    Misfortune misfortune = (*fate)(deed);
    if (misfortune.delay.count() > 0) std::this_thread::sleep_for(misfortune.delay);
    return misfortune;
  }

  // Does something to the files and writes it down, as one.
  template <typename Work>
  IOStatus change(Work work) {
    const std::unique_lock lock(journal_mutex_);
    if (off_) return IOStatus::IOError("the power is off (injected)");
    return work(journal_);
  }

  bool is_off() {
    const std::unique_lock lock(journal_mutex_);
    return off_;
  }

 private:
  const std::string root_;  // absolute, without detours
  std::shared_mutex fate_mutex_;
  std::shared_ptr<const Fate> fate_;
  std::mutex journal_mutex_;
  DriveJournal journal_;
  bool off_ = false;
};

IOStatus fate_of_read(Drive& drive, const std::string& name, std::uint64_t bytes) {
  if (drive.is_off()) return IOStatus::IOError("the power is off (injected)");
  return drive.befalls(Action::read, name, bytes).status;
}

// One file that is being written, whichever of RocksDB's two classes writes it.
class WrittenFile {
 public:
  WrittenFile(std::shared_ptr<Drive> drive, std::string name, FileId id)
      : drive_(std::move(drive)), name_(std::move(name)), id_(id) {}

  // `write` is called with as many of the first bytes as are to be written.
  template <typename Write>
  IOStatus write(std::uint64_t offset, const Slice& data, Write write) {
    const Misfortune misfortune = drive_->befalls(Action::write, name_, data.size(), data.size());
    const bool fails = !misfortune.status.ok();
    const Slice part(data.data(), fails ? std::min<std::uint64_t>(data.size(), misfortune.written_first) : data.size());
    if (part.empty() && fails) return misfortune.status;
    const IOStatus written = drive_->change([&](DriveJournal& journal) {
      const IOStatus noted = to_rocksdb(journal.note_write(id_, offset, part.size()));
      return noted.ok() ? write(part) : noted;
    });
    return fails ? misfortune.status : written;
  }

  template <typename Truncate>
  IOStatus truncate(std::uint64_t size, Truncate truncate) {
    return drive_->change([&](DriveJournal& journal) {
      const IOStatus noted = to_rocksdb(journal.note_truncation(id_, size));
      return noted.ok() ? truncate() : noted;
    });
  }

  IOStatus sync() {
    std::uint64_t began = 0;
    const IOStatus begun = drive_->change([&](DriveJournal& journal) {
      began = journal.events();
      return IOStatus::OK();
    });
    if (!begun.ok()) return begun;
    const Misfortune misfortune = drive_->befalls(Action::sync, name_, 0);
    if (!misfortune.status.ok()) return misfortune.status;
    return drive_->change([&](DriveJournal& journal) {
      return to_rocksdb(journal.note({.kind = Kind::sync, .id = id_, .length = began}));
    });
  }

  IOStatus may_read(std::uint64_t bytes) const { return fate_of_read(*drive_, name_, bytes); }

 private:
  const std::shared_ptr<Drive> drive_;
  const std::string name_;
  const FileId id_;
};

class WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(std::unique_ptr<rocksdb::FSWritableFile> host, WrittenFile file, std::uint64_t offset)
      : FSWritableFileOwnerWrapper(std::move(host)), file_(std::move(file)), offset_(offset) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return file_.write(offset_, data, [&](const Slice& part) {
      offset_ += part.size();
      return target()->Append(part, options, dbg);
    });
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& /*info*/,
                  IODebugContext* dbg) override {
    return Append(data, options, dbg);
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    return file_.write(offset, data, [&](const Slice& part) {
      offset_ = offset + part.size();
      return target()->PositionedAppend(part, offset, options, dbg);
    });
  }
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* dbg) override {
    return PositionedAppend(data, offset, options, dbg);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* dbg) override {
    return file_.truncate(size, [&] {
      offset_ = size;
      return target()->Truncate(size, options, dbg);
    });
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return file_.sync(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return file_.sync(); }
  // Linux begins to write and does not wait: nothing is promised.
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override {
    return strict_bytes_per_sync_ ? file_.sync() : IOStatus::OK();
  }
  // Space set aside ahead would only cost a tmpfs its memory.
  void PrepareWrite(size_t, size_t, const IOOptions&, IODebugContext*) override {}
  IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  WrittenFile file_;
  std::uint64_t offset_;
};

class RandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> host, WrittenFile file)
      : FSRandomRWFileOwnerWrapper(std::move(host)), file_(std::move(file)) {}

  IOStatus Write(uint64_t offset, const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return file_.write(offset, data, [&](const Slice& part) { return target()->Write(offset, part, options, dbg); });
  }
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const IOStatus fate = file_.may_read(n);
    return fate.ok() ? target()->Read(offset, n, options, result, scratch, dbg) : fate;
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return file_.sync(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return file_.sync(); }

 private:
  WrittenFile file_;
};

class RandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  RandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile> host, std::shared_ptr<Drive> drive, std::string name)
      : FSRandomAccessFileOwnerWrapper(std::move(host)), drive_(std::move(drive)), name_(std::move(name)) {}

  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const IOStatus fate = fate_of_read(*drive_, name_, n);
    return fate.ok() ? target()->Read(offset, n, options, result, scratch, dbg) : fate;
  }
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options, IODebugContext* dbg) override {
    for (size_t i = 0; i < count; ++i) {
      FSReadRequest& one = requests[i];
      one.status = Read(one.offset, one.len, options, &one.result, one.scratch, dbg);
    }
    return IOStatus::OK();
  }
  IOStatus ReadAsync(FSReadRequest& request, const IOOptions& options, ReadAsyncCallback callback, void* argument,
                     void** /*handle*/, IOHandleDeleter* /*deleter*/, IODebugContext* dbg) override {
    request.status = Read(request.offset, request.len, options, &request.result, request.scratch, dbg);
    callback(request, argument);
    return IOStatus::OK();
  }

 private:
  const std::shared_ptr<Drive> drive_;
  const std::string name_;
};

class SequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  SequentialFile(std::unique_ptr<rocksdb::FSSequentialFile> host, std::shared_ptr<Drive> drive, std::string name)
      : FSSequentialFileOwnerWrapper(std::move(host)), drive_(std::move(drive)), name_(std::move(name)) {}

  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch, IODebugContext* dbg) override {
    const IOStatus fate = fate_of_read(*drive_, name_, n);
    return fate.ok() ? target()->Read(n, options, result, scratch, dbg) : fate;
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                          IODebugContext* dbg) override {
    const IOStatus fate = fate_of_read(*drive_, name_, n);
    return fate.ok() ? target()->PositionedRead(offset, n, options, result, scratch, dbg) : fate;
  }

 private:
  const std::shared_ptr<Drive> drive_;
  const std::string name_;
};

class Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(std::unique_ptr<rocksdb::FSDirectory> host, std::shared_ptr<Drive> drive, std::string name)
      : FSDirectoryWrapper(std::move(host)), drive_(std::move(drive)), name_(std::move(name)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return sync(); }
  IOStatus FsyncWithDirOptions(const IOOptions&, IODebugContext*, const rocksdb::DirFsyncOptions&) override {
    return sync();
  }

 private:
  IOStatus sync() {
    const Misfortune misfortune = drive_->befalls(Action::sync_directory, name_, 0);
    if (!misfortune.status.ok()) return misfortune.status;
    return drive_->change(
        [&](DriveJournal& journal) { return to_rocksdb(journal.note({.kind = Kind::sync_directory, .path = name_})); });
  }

  const std::shared_ptr<Drive> drive_;
  const std::string name_;
};

FileOptions buffered(const FileOptions& options) {
  FileOptions host = options;
  host.use_direct_reads = false;
  host.use_direct_writes = false;
  host.use_mmap_writes = false;
  return host;
}

class WatchedFileSystem final : public FaultyFileSystem {
 public:
  WatchedFileSystem(const std::shared_ptr<rocksdb::FileSystem>& host, std::shared_ptr<Drive> drive)
      : FaultyFileSystem(host), drive_(std::move(drive)) {}

  const char* Name() const override { return "spillway-faults"; }
  void set_fate(Fate fate) override { drive_->set_fate(std::move(fate)); }
  void cut_power() override { drive_->cut_power(); }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    if (!name) return target()->NewWritableFile(path, buffered(options), result, dbg);
    return create(path, *name, result, dbg,
                  [&] { return target()->NewWritableFile(path, buffered(options), result, dbg); });
  }

  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    if (!name) return target()->ReopenWritableFile(path, buffered(options), result, dbg);
    IOStatus status;
    const auto id = existing_or_new(*name, &status,
                                    [&] { return target()->ReopenWritableFile(path, buffered(options), result, dbg); });
    if (status.ok()) wrap(*name, id.first, id.second, result);
    return status;
  }

  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    const auto old_name = drive_->name_of(old_path);
    if (!name || !old_name) return target()->ReuseWritableFile(path, old_path, buffered(options), result, dbg);
    FileId id = 0;
    const IOStatus status = rename(
        *old_name, *name, [&] { return target()->ReuseWritableFile(path, old_path, buffered(options), result, dbg); },
        &id);
    if (status.ok()) wrap(*name, id, 0, result);
    return status;
  }

  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    if (!name) return target()->NewRandomRWFile(path, buffered(options), result, dbg);
    IOStatus status;
    const auto id = existing_or_new(*name, &status,
                                    [&] { return target()->NewRandomRWFile(path, buffered(options), result, dbg); });
    if (status.ok()) {
      *result = std::make_unique<RandomRWFile>(std::move(*result), WrittenFile(drive_, *name, id.first));
    }
    return status;
  }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewRandomAccessFile(path, buffered(options), result, dbg);
    const auto name = drive_->name_of(path);
    if (!status.ok() || !name) return status;
    *result = std::make_unique<RandomAccessFile>(std::move(*result), drive_, *name);
    return status;
  }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewSequentialFile(path, buffered(options), result, dbg);
    const auto name = drive_->name_of(path);
    if (!status.ok() || !name) return status;
    *result = std::make_unique<SequentialFile>(std::move(*result), drive_, *name);
    return status;
  }

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewDirectory(path, options, result, dbg);
    const auto name = drive_->is_root(path) ? std::string() : drive_->name_of(path);
    if (!status.ok() || !name) return status;
    *result = std::make_unique<Directory>(std::move(*result), drive_, *name);
    return status;
  }

  // Changed in place, the bytes would not be known any more.
  IOStatus NewMemoryMappedFileBuffer(const std::string&, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>*) override {
    return IOStatus::NotSupported("NewMemoryMappedFileBuffer");
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    if (!name) return target()->DeleteFile(path, options, dbg);
    const Misfortune misfortune = drive_->befalls(Action::remove, *name, 0);
    if (!misfortune.status.ok()) return misfortune.status;
    return drive_->change([&](DriveJournal& journal) {
      const IOStatus status = target()->DeleteFile(path, options, dbg);
      return status.ok() ? to_rocksdb(journal.note({.kind = Kind::unlink, .path = *name})) : status;
    });
  }

  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    if (!name) return target()->Truncate(path, size, options, dbg);
    return drive_->change([&](DriveJournal& journal) {
      const auto found = journal.files().names.find(*name);
      if (found == journal.files().names.end()) return IOStatus::NotFound(path);
      const IOStatus noted = to_rocksdb(journal.note_truncation(found->second, size));
      return noted.ok() ? target()->Truncate(path, size, options, dbg) : noted;
    });
  }

  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* dbg) override {
    const auto old_name = drive_->name_of(from);
    const auto name = drive_->name_of(to);
    if (!old_name || !name) return target()->RenameFile(from, to, options, dbg);
    bool is_directory = false;
    if (target()->IsDirectory(from, options, &is_directory, dbg).ok() && is_directory) {
      return rename_directory(*old_name, *name, [&] { return target()->RenameFile(from, to, options, dbg); });
    }
    FileId ignored = 0;
    return rename(
        *old_name, *name, [&] { return target()->RenameFile(from, to, options, dbg); }, &ignored);
  }

  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    IODebugContext* dbg) override {
    const auto old_name = drive_->name_of(from);
    const auto name = drive_->name_of(to);
    if (!old_name || !name) return target()->LinkFile(from, to, options, dbg);
    const Misfortune misfortune = drive_->befalls(Action::create, *name, 0);
    if (!misfortune.status.ok()) return misfortune.status;
    return drive_->change([&](DriveJournal& journal) {
      const auto found = journal.files().names.find(*old_name);
      if (found == journal.files().names.end()) return IOStatus::NotFound(from);
      const IOStatus status = target()->LinkFile(from, to, options, dbg);
      if (!status.ok()) return status;
      return to_rocksdb(journal.note({.kind = Kind::link, .id = found->second, .path = *name}));
    });
  }

 private:
  void wrap(const std::string& name, FileId id, std::uint64_t offset,
            std::unique_ptr<rocksdb::FSWritableFile>* result) {
    *result = std::make_unique<WritableFile>(std::move(*result), WrittenFile(drive_, name, id), offset);
  }

  // A file of that name begins anew: the host would empty the old one, whose bytes may still be needed.
  template <typename Create>
  IOStatus create(const std::string& path, const std::string& name, std::unique_ptr<rocksdb::FSWritableFile>* result,
                  IODebugContext* dbg, Create make) {
    const Misfortune misfortune = drive_->befalls(Action::create, name, 0);
    if (!misfortune.status.ok()) return misfortune.status;
    FileId id = 0;
    const IOStatus status = drive_->change([&](DriveJournal& journal) {
      if (journal.files().names.contains(name)) target()->DeleteFile(path, IOOptions(), dbg).PermitUncheckedError();
      return made(journal, name, &id, make);
    });
    if (status.ok()) wrap(name, id, 0, result);
    return status;
  }

  template <typename Make>
  static IOStatus made(DriveJournal& journal, const std::string& name, FileId* id, Make make) {
    IOStatus status = make();
    if (!status.ok()) return status;
    Result<FileId> created = journal.note_created(name);
    if (created) *id = *created;
    return to_rocksdb(created.status());
  }

  // Its id, and its size.
  template <typename Open>
  std::pair<FileId, std::uint64_t> existing_or_new(const std::string& name, IOStatus* status, Open open) {
    std::pair<FileId, std::uint64_t> file{0, 0};
    const Misfortune misfortune = drive_->befalls(Action::create, name, 0);
    *status = misfortune.status;
    if (!status->ok()) return file;
    *status = drive_->change([&](DriveJournal& journal) {
      const auto found = journal.files().names.find(name);
      if (found == journal.files().names.end()) return made(journal, name, &file.first, open);
      file = {found->second, journal.files().sizes.at(found->second)};
      return open();
    });
    return file;
  }

  template <typename Rename>
  IOStatus rename(const std::string& from, const std::string& to, Rename work, FileId* id) {
    const Misfortune misfortune = drive_->befalls(Action::rename, to, 0);
    if (!misfortune.status.ok()) return misfortune.status;
    return drive_->change([&](DriveJournal& journal) {
      const auto found = journal.files().names.find(from);
      if (found != journal.files().names.end()) *id = found->second;
      const IOStatus status = work();
      return status.ok() ? to_rocksdb(journal.note({.kind = Kind::rename, .path = from, .to = to})) : status;
    });
  }

  // Of a directory the drive knows only what is in it. Its entries go along with it: they are durable from then on.
  template <typename Rename>
  IOStatus rename_directory(const std::string& from, const std::string& to, Rename work) {
    const Misfortune misfortune = drive_->befalls(Action::rename, to, 0);
    if (!misfortune.status.ok()) return misfortune.status;
    return drive_->change([&](DriveJournal& journal) {
      const std::string prefix = from + "/";
      std::vector<std::string> rests;
      for (const auto& [name, id] : journal.files().names) {
        if (name.starts_with(prefix)) rests.push_back(name.substr(prefix.size()));
      }
      IOStatus status = work();
      if (status.ok()) status = to_rocksdb(journal.note({.kind = Kind::sync_directory, .path = from}));
      for (const std::string& rest : rests) {
        if (!status.ok()) break;
        status = to_rocksdb(journal.note({.kind = Kind::rename, .path = prefix + rest, .to = to + "/" + rest}));
      }
      return status;
    });
  }

  const std::shared_ptr<Drive> drive_;
};

}  // namespace

Result<std::shared_ptr<FaultyFileSystem>> FaultyFileSystem::open(const std::string& root,
                                                                 const std::shared_ptr<rocksdb::FileSystem>& host) {
  auto path = std::filesystem::absolute(root).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  Result<DriveJournal> journal = DriveJournal::open(path.string());
  if (!journal) return journal.status();
  auto drive = std::make_shared<Drive>(path.string(), std::move(*journal));
  return std::shared_ptr<FaultyFileSystem>(std::make_shared<WatchedFileSystem>(host, std::move(drive)));
}

}  // namespace spillway::faults
