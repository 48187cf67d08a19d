#include "faults/file_system.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "faults/drive.h"
#include "faults/files.h"

namespace spillway::faults {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

namespace {

using Kind = DriveEvent::Kind;

FileOptions buffered(const FileOptions& options) {
  FileOptions host = options;
  host.use_direct_reads = false;
  host.use_direct_writes = false;
  host.use_mmap_writes = false;
  return host;
}

class JournaledFileSystem final : public FaultyFileSystem {
 public:
  JournaledFileSystem(const std::shared_ptr<rocksdb::FileSystem>& host, std::shared_ptr<Drive> drive)
      : FaultyFileSystem(host), drive_(std::move(drive)) {}

  const char* Name() const override { return "spillway-faults"; }
  void set_fault_rule(FileFaultRule rule) override { drive_->set_fault_rule(std::move(rule)); }
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
      *result = make_random_rw_file(std::move(*result), drive_, *name, id.first);
    }
    return status;
  }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewRandomAccessFile(path, buffered(options), result, dbg);
    const auto name = drive_->name_of(path);
    if (!status.ok() || !name) return status;
    *result = make_random_access_file(std::move(*result), drive_, *name);
    return status;
  }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewSequentialFile(path, buffered(options), result, dbg);
    const auto name = drive_->name_of(path);
    if (!status.ok() || !name) return status;
    *result = make_sequential_file(std::move(*result), drive_, *name);
    return status;
  }

  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* dbg) override {
    const IOStatus status = target()->NewDirectory(path, options, result, dbg);
    const auto name = drive_->is_root(path) ? std::string() : drive_->name_of(path);
    if (!status.ok() || !name) return status;
    *result = make_directory(std::move(*result), drive_, *name);
    return status;
  }

  // Not supported, because changes through a mapping would not be recorded.
  IOStatus NewMemoryMappedFileBuffer(const std::string&, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>*) override {
    return IOStatus::NotSupported("NewMemoryMappedFileBuffer");
  }

  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    if (!name) return target()->DeleteFile(path, options, dbg);
    const FileFault fault = drive_->fault_of(Action::remove, *name, 0);
    if (!fault.status.ok()) return fault.status;
    return drive_->change([&](DriveJournal& journal) {
      const IOStatus status = target()->DeleteFile(path, options, dbg);
      return status.ok() ? to_io_status(journal.note({.kind = Kind::unlink, .path = *name})) : status;
    });
  }

  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    const auto name = drive_->name_of(path);
    if (!name) return target()->Truncate(path, size, options, dbg);
    return drive_->change([&](DriveJournal& journal) {
      const auto found = journal.files().names.find(*name);
      if (found == journal.files().names.end()) return IOStatus::NotFound(path);
      const IOStatus noted = to_io_status(journal.note_truncation(found->second, size));
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
    const FileFault fault = drive_->fault_of(Action::create, *name, 0);
    if (!fault.status.ok()) return fault.status;
    return drive_->change([&](DriveJournal& journal) {
      const auto found = journal.files().names.find(*old_name);
      if (found == journal.files().names.end()) return IOStatus::NotFound(from);
      const IOStatus status = target()->LinkFile(from, to, options, dbg);
      if (!status.ok()) return status;
      return to_io_status(journal.note({.kind = Kind::link, .id = found->second, .path = *name}));
    });
  }

 private:
  void wrap(const std::string& name, FileId id, std::uint64_t offset,
            std::unique_ptr<rocksdb::FSWritableFile>* result) {
    *result = make_writable_file(std::move(*result), drive_, name, id, offset);
  }

  // Removes an existing file of that name first. The host would truncate it, and its bytes may still be needed.
  template <typename Create>
  IOStatus create(const std::string& path, const std::string& name, std::unique_ptr<rocksdb::FSWritableFile>* result,
                  IODebugContext* dbg, Create make) {
    const FileFault fault = drive_->fault_of(Action::create, name, 0);
    if (!fault.status.ok()) return fault.status;
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
    return to_io_status(created.status());
  }

  // Returns the file's id and size.
  template <typename Open>
  std::pair<FileId, std::uint64_t> existing_or_new(const std::string& name, IOStatus* status, Open open) {
    std::pair<FileId, std::uint64_t> file{0, 0};
    const FileFault fault = drive_->fault_of(Action::create, name, 0);
    *status = fault.status;
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
    const FileFault fault = drive_->fault_of(Action::rename, to, 0);
    if (!fault.status.ok()) return fault.status;
    return drive_->change([&](DriveJournal& journal) {
      const auto found = journal.files().names.find(from);
      if (found != journal.files().names.end()) *id = found->second;
      const IOStatus status = work();
      return status.ok() ? to_io_status(journal.note({.kind = Kind::rename, .path = from, .to = to})) : status;
    });
  }

  // The drive records only the contents of directories. A renamed directory's entries become durable at once.
  template <typename Rename>
  IOStatus rename_directory(const std::string& from, const std::string& to, Rename work) {
    const FileFault fault = drive_->fault_of(Action::rename, to, 0);
    if (!fault.status.ok()) return fault.status;
    return drive_->change([&](DriveJournal& journal) {
      const std::string prefix = from + "/";
      std::vector<std::string> rests;
      for (const auto& [name, id] : journal.files().names) {
        if (name.starts_with(prefix)) rests.push_back(name.substr(prefix.size()));
      }
      IOStatus status = work();
      if (status.ok()) status = to_io_status(journal.note({.kind = Kind::sync_directory, .path = from}));
      for (const std::string& rest : rests) {
        if (!status.ok()) break;
        status = to_io_status(journal.note({.kind = Kind::rename, .path = prefix + rest, .to = to + "/" + rest}));
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
  return std::shared_ptr<FaultyFileSystem>(std::make_shared<JournaledFileSystem>(host, std::move(drive)));
}

}  // namespace spillway::faults
