// What a loss of power leaves of an engine's files on a plain directory. A journal outside the directory records every
// call that changes or syncs a file, taken below the engine (engine_host_calls.h), and outlives a killed process.
// faults/power_loss.h keeps a random part of what was not synced.
//
// Contents are synced by fsync(2), fdatasync(2) and writes to files opened with O_SYNC or O_DSYNC. sync_file_range(2)
// makes nothing durable. Names are synced by an fsync(2) of their directory, or, with Names::with_their_file, also by
// the first sync of their file. POSIX does not promise that; the journals of ext4 and XFS do it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/file_bytes.h"
#include "engine_host_calls.h"
#include "faults/drive_journal.h"
#include "faults/power_loss.h"

namespace spillway::engine {

enum class Names : std::uint8_t { with_their_directory, with_their_file };
// Whether syncs work, or return without effect. In the second case a judge must find losses.
enum class Syncs : std::uint8_t { kept, ignored };

class DirectoryJournal final : public HostCalls {
 public:
  // `on_sync`: called when a sync of written bytes has begun and has had no effect yet.
  DirectoryJournal(const std::string& directory, Names names, Syncs syncs, std::function<void()> on_sync)
      : HostCalls(directory), names_(names), syncs_(syncs), on_sync_(std::move(on_sync)), journal_(open(directory)) {
    for (const auto& [name, id] : journal_->files().names) ids_[number_of(directory + "/" + name)] = id;
    start();
  }
  ~DirectoryJournal() override { stop(); }

  long around(const HostCall& call, const std::function<long()>& make) override {
    if (!faults::holds_data(call.kind == HostCall::Kind::rename ? call.to : call.path)) return make();
    switch (call.kind) {
      case HostCall::Kind::read:
        return make();
      case HostCall::Kind::sync:
      case HostCall::Kind::sync_directory:
        return sync(call, make);
      default:
        break;
    }
    const std::lock_guard lock(mutex_);
    switch (call.kind) {
      case HostCall::Kind::open:
        return open_file(call, make);
      case HostCall::Kind::write:
        return write(call, make);
      case HostCall::Kind::truncate:
        must(journal_->note_truncation(id_of(call.fd), call.offset));
        return make();
      default:
        return name(call, make);
    }
  }

 private:
  using Kind = faults::DriveEvent::Kind;

  // An incomplete journal would hide losses.
  static void must(const Status& status) {
    if (status) return;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::abort();
  }
  static std::unique_ptr<faults::DriveJournal> open(const std::string& directory) {
    auto journal = faults::DriveJournal::open(directory);
    must(journal.status());
    return std::make_unique<faults::DriveJournal>(std::move(*journal));
  }
  static ino_t number_of(const std::string& path) {
    struct stat seen {};
    return ::stat(path.c_str(), &seen) == 0 ? seen.st_ino : 0;
  }
  // Inode numbers are not reused, because the journal has a link to each file.
  faults::FileId id_of(int fd) const {
    struct stat seen {};
    const auto found = ::fstat(fd, &seen) == 0 ? ids_.find(seen.st_ino) : ids_.end();
    if (found == ids_.end()) must(Status::io_error("a file was made past the system's calls that HostCalls sees"));
    return found->second;
  }

  long open_file(const HostCall& call, const std::function<long()>& make) {
    const std::string path = directory() + "/" + call.path;
    const ino_t before = number_of(path);
    const auto known = ids_.find(before);
    if (before != 0 && known != ids_.end() && (call.flags & O_TRUNC) != 0) {
      must(journal_->note_truncation(known->second, 0));
    }
    const long fd = make();
    if (fd < 0 || before != 0) return fd;
    auto id = journal_->note_created(call.path);
    must(id.status());
    ids_[number_of(path)] = *id;
    unsynced_names_.insert(*id);
    return fd;
  }

  long write(const HostCall& call, const std::function<long()>& make) {
    const faults::FileId id = id_of(call.fd);
    must(journal_->note_write(id, call.offset, call.bytes));
    written_.insert(id);
    const long wrote = make();
    const bool is_synced = (::fcntl(call.fd, F_GETFL) & (O_SYNC | O_DSYNC)) != 0;
    if (wrote >= 0 && is_synced && syncs_ == Syncs::kept) note_sync(id, journal_->events(), call.path);
    return wrote;
  }

  long name(const HostCall& call, const std::function<long()>& make) {
    const long result = make();
    if (result != 0) return result;
    const auto id = journal_->files().names.find(call.path);
    if (id == journal_->files().names.end()) return result;  // a directory
    if (call.kind != HostCall::Kind::unlink) unsynced_names_.insert(id->second);
    switch (call.kind) {
      case HostCall::Kind::rename:
        must(journal_->note({.kind = Kind::rename, .path = call.path, .to = call.to}));
        break;
      case HostCall::Kind::link:
        must(journal_->note({.kind = Kind::link, .id = id->second, .path = call.to}));
        break;
      default:
        must(journal_->note({.kind = Kind::unlink, .path = call.path}));
    }
    return result;
  }

  long sync(const HostCall& call, const std::function<long()>& make) {
    std::unique_lock lock(mutex_);
    if (call.kind == HostCall::Kind::sync_directory) {
      if (syncs_ == Syncs::ignored) return 0;
      must(journal_->note({.kind = Kind::sync_directory, .path = call.path}));
      return 0;
    }
    const faults::FileId id = id_of(call.fd);
    const std::uint64_t before = journal_->events();
    if (written_.erase(id) != 0 && on_sync_) on_sync_();
    if (syncs_ == Syncs::ignored) return 0;
    lock.unlock();
    const long result = make();
    lock.lock();
    if (result == 0) note_sync(id, before, call.path);
    return result;
  }

  void note_sync(faults::FileId id, std::uint64_t before, const std::string& path) {
    must(journal_->note({.kind = Kind::sync, .id = id, .length = before}));
    if (names_ == Names::with_their_directory || unsynced_names_.erase(id) == 0) return;
    must(journal_->note({.kind = Kind::sync_directory, .path = faults::parent_of(path)}));
  }

  const Names names_;
  const Syncs syncs_;
  const std::function<void()> on_sync_;
  std::mutex mutex_;  // held during a call and its event, except for a file's sync
  const std::unique_ptr<faults::DriveJournal> journal_;
  std::map<ino_t, faults::FileId> ids_;
  std::set<faults::FileId> unsynced_names_;
  std::set<faults::FileId> written_;  // written since their last sync
};

// The files of a client that died, for any number of simulated losses of power.
class DirectoryPowerCut {
 public:
  // REQUIRES: a DirectoryJournal wrote the directory, and nothing uses it any more. The directory is moved away.
  explicit DirectoryPowerCut(const std::string& directory) : directory_(directory), dead_(directory + "-dead") {
    std::filesystem::remove_all(dead_);
    std::filesystem::remove_all(faults::drive_directory(dead_));
    std::filesystem::rename(directory_, dead_);
    std::filesystem::rename(faults::drive_directory(directory_), faults::drive_directory(dead_));
  }

  // Replaces the directory by one possible state of the drive. Returns how many files lost something or are missing.
  Result<int> apply(std::uint64_t seed) const {
    std::filesystem::remove_all(directory_);
    if (Status status = faults::power_loss(dead_, directory_, {.seed = seed}); !status) return status;
    int changed = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dead_)) {
      const std::string name = entry.path().string().substr(dead_.size() + 1);
      if (!entry.is_regular_file() || !faults::holds_data(name)) continue;
      const std::string left = directory_ + "/" + name;
      changed += !std::filesystem::exists(left) || file_bytes(left) != file_bytes(entry.path()) ? 1 : 0;
    }
    return changed;
  }

 private:
  const std::string directory_;
  const std::string dead_;
};

}  // namespace spillway::engine
