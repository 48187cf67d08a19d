#include "spill/store/region/region_recovery.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "spill/store/region/log_files.h"

namespace spillway::spill {

using rocksdb::IOStatus;
using rocksdb::Status;

namespace {

std::optional<GenerationId> generation_of(const std::string& name, const std::string& suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - suffix.size();
  GenerationId generation = 0;
  const auto parsed = std::from_chars(name.data(), end, generation);
  if (parsed.ec != std::errc() || parsed.ptr != end || digits_of(generation) + suffix != name) return std::nullopt;
  return generation;
}

Status read_header(const RegionLog& log, LogName* name, HeaderFault* fault, bool* names_other = nullptr) {
  char header[kLogHeaderBytes];
  std::uint64_t got = 0;
  const IOStatus status = read_at(*log.reader, {}, 0, sizeof header, header, &got);
  if (!status.ok()) return status;
  *fault = decode_log_header({header, got}, name);
  if (names_other != nullptr) *names_other = names_other_version({header, got});
  return status;
}

Status lost_durable(const std::string& what) {
  return Status::Corruption(what + ", in what was durable; put a copy of it there, or take it and all logs of higher " +
                            "numbers out of the directory, with " + kEndsFile + ", and lose the writes in them");
}

Status lost_durable(const RegionLog& log, std::uint64_t at) {
  LogName name;
  HeaderFault fault = HeaderFault::none;
  bool names_other = false;
  if (at == 0 && read_header(log, &name, &fault, &names_other).ok() && names_other) {
    return Status::Corruption(log.path() +
                              " is damaged at byte 0, in what was durable, or was written by another version " +
                              "of Spillway (its byte 7); open it with that, or put a copy of it there");
  }
  return lost_durable(log.path() + " is damaged at byte " + std::to_string(at));
}

// Before anything is changed.
Status check_versions(const RegionLogs& logs) {
  for (const auto& log : logs.all()) {
    LogName name;
    HeaderFault fault = HeaderFault::none;
    if (Status status = read_header(*log, &name, &fault); !status.ok()) return status;
    if (fault == HeaderFault::other_version) {
      return Status::NotSupported(log->path() +
                                  " was written by another version of Spillway (its byte 7); open it with that");
    }
  }
  return {};
}

class Recovery {
 public:
  Recovery(const RegionDirectory& directory, RegionLogs& logs, const FoundEnds& ends, const Store::Each& each)
      : directory_(directory), logs_(logs), ends_(ends), each_(each) {}

  // REQUIRES: find_logs() returned OK
  Status run() {
    if (Status status = check_none_missing(); !status.ok()) return status;
    const auto all = logs_.all();
    for (const auto& log : all) {
      std::optional<std::uint64_t> torn_at;
      if (Status status = recover_log(*log, &torn_at); !status.ok()) return status;
      const auto before = torn_at && *torn_at == 0 ? find_before(log->name) : nullptr;
      const RegionLog& torn = before ? *before : *log;
      const std::uint64_t at = before ? before->bytes.load() : torn_at.value_or(log->bytes);
      if (was_longer(ends_, log->name.generation, log->name.salt, torn_at.value_or(log->bytes))) {
        return lost_durable(torn, at);
      }
      if (!torn_at) continue;
      const Status checked = check_torn(torn, at);
      return checked.ok() ? make_durable(*log) : checked;
    }
    return all.empty() ? Status::OK() : make_durable(*all.back());
  }

 private:
  // The log before this one, where that one's end has to be there; null if it does not, or was dropped.
  std::shared_ptr<RegionLog> find_before(const LogName& name) const {
    return name.after_bytes > 0 ? logs_.find(name.after) : nullptr;
  }

  // After a close all logs are there; after any other end those that were not the oldest with something in it.
  Status check_none_missing() const {
    bool has_older = ends_.was_closed;
    for (const auto& [generation, end] : ends_.ends) {
      if (logs_.find(generation)) {
        has_older = has_older || end.bytes > kLogHeaderBytes;
      } else if (has_older && (ends_.was_closed || end.bytes > kLogHeaderBytes)) {
        return lost_durable(directory_.log_base(generation) + kLogSuffix + " is missing");
      }
    }
    return Status::OK();
  }

  // `torn_at`: where what is not whole begins, if anything is not; 0 where that is in the log before.
  Status recover_log(RegionLog& log, std::optional<std::uint64_t>* torn_at) {
    std::uint64_t file_bytes = 0;
    if (IOStatus status = directory_.files().GetFileSize(log.path(), {}, &file_bytes, nullptr); !status.ok()) {
      return status;
    }
    if (file_bytes == 0) return Status::OK();  // nothing was ever in it, or a cut left nothing
    LogName name;
    HeaderFault fault = HeaderFault::none;
    if (Status status = read_header(log, &name, &fault); !status.ok()) return status;
    if (fault != HeaderFault::none || name.generation != log.name.generation) {
      // One that could not be begun, and not be removed, is no more than that.
      if (file_bytes > kLogHeaderBytes || logs_.newest().get() == &log) *torn_at = 0;
      return Status::OK();
    }
    log.name = name;
    if (const auto before = find_before(name); before && before->bytes < name.after_bytes) {
      *torn_at = 0;  // though its own header is whole
      return Status::OK();
    }
    return recover_records(log, file_bytes, torn_at);
  }

  Status recover_records(RegionLog& log, std::uint64_t file_bytes, std::optional<std::uint64_t>* torn_at) {
    LogReader reader(*log.reader, log.name, file_bytes);
    logs_.resize(log, kLogHeaderBytes);
    for (;;) {
      const LogReader::Next next = reader.next();
      if (next == LogReader::Next::error) return reader.status();
      if (next == LogReader::Next::torn) *torn_at = reader.offset();
      if (next != LogReader::Next::record) return Status::OK();
      logs_.resize(log, reader.whole_bytes());
      log.last_record = reader.offset();
      if (Status status = each_({log.name.generation, reader.offset(), reader.record()}); !status.ok()) return status;
    }
  }

  Status check_torn(const RegionLog& log, std::uint64_t at) const {
    bool durable = false;
    Status status;
    // (Without its header nothing is known of a log's frames.)
    if (at >= kLogHeaderBytes) status = knows_durable(log, at, &durable);
    for (const auto& later : logs_.all()) {
      if (!status.ok() || durable) break;
      if (later->name.generation > log.name.generation) status = says_durable(*later, log.name.generation, &durable);
    }
    return status.ok() && durable ? lost_durable(log, at) : status;
  }

  // Whether a frame of the log knows more than `at` bytes of it to be durable.
  Status knows_durable(const RegionLog& log, std::uint64_t at, bool* durable) const {
    std::uint64_t file_bytes = 0;
    const IOStatus status = directory_.files().GetFileSize(log.path(), {}, &file_bytes, nullptr);
    return status.ok() ? was_durable(*log.reader, log.name, at, file_bytes, durable) : status;
  }

  // Whether a later log says that all of generation `before` was durable: when it was begun, or by a frame that knows
  // something of itself to be.
  Status says_durable(const RegionLog& later, GenerationId before, bool* durable) const {
    LogName name;
    HeaderFault fault = HeaderFault::none;
    if (Status status = read_header(later, &name, &fault); !status.ok() || fault != HeaderFault::none) return status;
    *durable = before < name.durable_before;
    if (*durable) return Status::OK();
    std::uint64_t file_bytes = 0;
    const IOStatus status = directory_.files().GetFileSize(later.path(), {}, &file_bytes, nullptr);
    return status.ok() ? was_durable(*later.reader, name, 0, file_bytes, durable) : status;
  }

  // The log, and those before it that it does not know to be durable, may be what a killed process left in the page
  // cache: what RocksDB keeps of its own log from now on relies on them.
  Status make_durable(const RegionLog& last) const {
    for (const auto& log : logs_.all()) {
      if (log->name.generation < last.name.durable_before) continue;
      const IOStatus status = sync_log(directory_, *log);
      if (!status.ok() || log.get() == &last) return status;
    }
    return {};
  }

  const RegionDirectory& directory_;
  RegionLogs& logs_;
  const FoundEnds& ends_;
  const Store::Each& each_;
};

Status find_logs(const RegionDirectory& directory, RegionLogs& logs, std::vector<std::string>* leftovers) {
  std::vector<std::string> names;
  if (Status status = directory.names(&names); !status.ok()) return status;
  for (const std::string& name : names) {
    if (generation_of(name, kDropped) || generation_of(name, std::string(kLogSuffix) + kCopy)) {
      leftovers->push_back(directory.path_of(name));
    } else if (const auto generation = generation_of(name, kLogSuffix)) {
      auto log = std::make_shared<RegionLog>();
      log->name.generation = *generation;
      log->base = directory.log_base(*generation);
      if (Status status = open_reader(directory, *log); !status.ok()) return status;
      logs.put(std::move(log));
    }
  }
  return {};
}

Status remove_leftovers(const RegionDirectory& directory, const std::vector<std::string>& leftovers) {
  for (const std::string& path : leftovers) {
    const IOStatus status = directory.files().DeleteFile(path, {}, nullptr);
    if (!status.ok()) return status;
  }
  // What a killed process renamed or removed may not be durable yet, and everything from now on relies on it.
  return directory.sync(rocksdb::DirFsyncOptions(rocksdb::DirFsyncOptions::kFileDeleted));
}

}  // namespace

Status recover_logs(const RegionDirectory& directory, RegionLogs& logs, DurableEnds& ends, const Store::Each& each) {
  std::vector<std::string> leftovers;
  if (Status status = find_logs(directory, logs, &leftovers); !status.ok()) return status;
  if (Status status = check_versions(logs); !status.ok()) return status;
  if (Status status = ends.read(); !status.ok()) return status;
  if (Status status = remove_leftovers(directory, leftovers); !status.ok()) return status;
  return Recovery(directory, logs, ends.found(), each).run();
}

}  // namespace spillway::spill
