#include "spill/store/region/region_view.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "spill/store/batch_visitor.h"
#include "spill/store/record.h"
#include "spill/store/region/durable_ends.h"
#include "spill/store/region/log_frame.h"
#include "spill/store/replaced_file.h"

namespace spillway::spill {
namespace {

using rocksdb::IOStatus;
using rocksdb::Slice;
using rocksdb::Status;

// Counts a batch's operations and their bytes by column family.
Status count_operations(const rocksdb::WriteBatch& batch, std::map<std::uint32_t, FamilyView>& families) {
  return visit_batch(batch, [&](const BatchOperation& operation) {
    switch (operation.kind) {
      case OperationKind::put:
      case OperationKind::merge:
      case OperationKind::remove:
      case OperationKind::single_remove:
      case OperationKind::remove_range: {
        FamilyView& family = families[operation.family];
        ++family.operations;
        family.bytes += operation.key.size() + operation.value.size();
        return Status();
      }
      case OperationKind::log_data:
        return Status();
      default:
        return unknown_operation(operation);
    }
  });
}

// A log that can be read.
struct ViewedLog {
  LogView view;
  LogName name;
  HeaderFault header = HeaderFault::none;
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
};

std::optional<GenerationId> generation_of(const std::string& name) {
  if (!name.ends_with(kLogSuffix)) return std::nullopt;
  const char* const end = name.data() + name.size() - (sizeof kLogSuffix - 1);
  GenerationId generation = 0;
  const auto parsed = std::from_chars(name.data(), end, generation);
  return parsed.ec == std::errc() && parsed.ptr == end ? std::optional(generation) : std::nullopt;
}

class Viewer {
 public:
  Viewer(rocksdb::FileSystem& files, std::string directory, RegionView& view)
      : files_(files), directory_(std::move(directory)), view_(view) {}

  Status view() {
    if (Status status = read_binding(); !status.ok()) return status;
    // Before the logs: what it says was true already when they are looked at.
    if (Status status = read_ends(files_, directory_ + "/" + kEndsFile, &ends_); !status.ok()) return status;
    if (ends_.damaged_at) view_.damage.push_back({directory_ + "/" + kEndsFile, *ends_.damaged_at});
    if (Status status = find_logs(); !status.ok()) return status;
    for (ViewedLog& log : logs_) {
      if (Status status = read(log); !status.ok()) return status;
      view_.logs.push_back(std::move(log.view));
    }
    find_missing();
    return {};
  }

 private:
  Status read_binding() {
    const std::string path = directory_ + "/" + kBindingFile;
    std::string bytes;
    if (IOStatus status = read_file_if_any(files_, path, &bytes); !status.ok()) return status;
    if (bytes.empty()) return {};
    if (is_binding_of_another_version(bytes)) {
      return Status::NotSupported(path + " was written by another version of Spillway (its first line); use that one");
    }
    view_.binding = decode_binding(bytes);
    if (!view_.binding) view_.damage.push_back({path, 0});
    return {};
  }

  // After a close nothing was dropped. After any other end nothing was behind the oldest with something in it: that
  // goes first, also of a store that is in use.
  void find_missing() {
    const LogView* older = nullptr;
    for (const auto& [generation, end] : ends_.ends) {
      const auto is_it = [id = generation](const LogView& log) { return log.generation == id; };
      const auto log = std::find_if(view_.logs.begin(), view_.logs.end(), is_it);
      const bool has_records = end.bytes > kLogHeaderBytes;
      if (log != view_.logs.end()) {
        if (older == nullptr && has_records) older = &*log;
      } else if (ends_.was_closed ||
                 (has_records && older != nullptr && files_.FileExists(older->path, {}, nullptr).ok())) {
        view_.damage.push_back({directory_ + "/" + digits_of(generation) + kLogSuffix, 0});
      }
    }
  }

  Status find_logs() {
    std::vector<std::string> names;
    if (IOStatus status = files_.GetChildren(directory_, {}, &names, nullptr); !status.ok()) return status;
    for (const std::string& name : names) {
      const auto generation = generation_of(name);
      if (!generation) continue;
      ViewedLog log;
      log.view.generation = log.name.generation = *generation;
      log.view.path = directory_ + "/" + name;
      Status status = open(log);
      if (status.IsNotFound() || status.IsPathNotFound()) continue;  // dropped meanwhile
      if (!status.ok()) return status;
      logs_.push_back(std::move(log));
    }
    std::sort(logs_.begin(), logs_.end(),
              [](const ViewedLog& a, const ViewedLog& b) { return a.view.generation < b.view.generation; });
    return {};
  }

  Status open(ViewedLog& log) {
    IOStatus status = files_.NewRandomAccessFile(log.view.path, {}, &log.file, nullptr);
    if (status.ok()) status = files_.GetFileSize(log.view.path, {}, &log.view.file_bytes, nullptr);
    if (!status.ok()) return status;
    char header[kLogHeaderBytes];
    std::uint64_t got = 0;
    status = read_at(*log.file, {}, 0, sizeof header, header, &got);
    if (!status.ok()) return status;
    LogName name;
    log.header = decode_log_header({header, got}, &name);
    if (log.header == HeaderFault::other_version) {
      return Status::NotSupported(log.view.path +
                                  " was written by another version of Spillway (its byte 7); use that one");
    }
    if (log.header == HeaderFault::none && name.generation != log.name.generation) log.header = HeaderFault::torn;
    if (log.header == HeaderFault::none) log.name = name;
    return {};
  }

  Status read(ViewedLog& log) {
    if (view_.ends_at) return {};
    if (log.view.file_bytes == 0) return is_shorter(log, 0) ? note_end(log, 0) : Status();
    if (log.header == HeaderFault::torn) return note_end(log, 0);
    if (is_behind_a_hole(log)) return note_end(log, 0);
    LogReader reader(*log.file, log.name, log.view.file_bytes);
    for (;;) {
      switch (reader.next()) {
        case LogReader::Next::end:
          whole_bytes_[log.view.generation] = log.view.file_bytes;
          return is_shorter(log, log.view.file_bytes) ? note_end(log, log.view.file_bytes) : Status();
        case LogReader::Next::error:
          return reader.status();
        case LogReader::Next::torn:
          whole_bytes_[log.view.generation] = reader.offset();
          return note_end(log, reader.offset());
        case LogReader::Next::record:
          if (!decode_header(reader.record())) {
            view_.damage.push_back({log.view.path, reader.offset()});
            return {};
          }
          ++log.view.records;
          const rocksdb::WriteBatch batch(batch_of(reader.record()).ToString());
          if (Status status = count_operations(batch, log.view.families); !status.ok()) return status;
      }
    }
  }

  // The log before it has not all that it had when this one was begun.
  bool is_behind_a_hole(const ViewedLog& log) const {
    const auto before = whole_bytes_.find(log.name.after);
    return log.name.after_bytes > 0 && before != whole_bytes_.end() && before->second < log.name.after_bytes;
  }

  // Than was durable of it.
  bool is_shorter(const ViewedLog& log, std::uint64_t whole_to) const {
    return was_longer(ends_, log.name.generation, log.name.salt, whole_to);
  }

  Status note_end(const ViewedLog& log, std::uint64_t offset) {
    bool was_there = false;
    if (Status status = was_known_durable(log, offset, &was_there); !status.ok()) return status;
    if (was_there) {
      view_.damage.push_back({log.view.path, offset});
      whole_bytes_[log.view.generation] = log.view.file_bytes;  // what follows is still read
    } else {
      view_.ends_at = BrokenAt{log.view.path, offset};
    }
    return {};
  }

  // By the file of ends, by a frame behind it, or by a later log.
  Status was_known_durable(const ViewedLog& log, std::uint64_t offset, bool* known) {
    *known = is_shorter(log, offset);
    IOStatus status;
    if (!*known && offset >= kLogHeaderBytes) {
      status = was_durable(*log.file, log.name, offset, log.view.file_bytes, known);
    }
    for (const ViewedLog& later : logs_) {
      if (!status.ok() || *known) break;
      if (later.name.generation <= log.name.generation || later.header != HeaderFault::none) continue;
      *known = log.name.generation < later.name.durable_before;
      if (!*known) status = was_durable(*later.file, later.name, 0, later.view.file_bytes, known);
    }
    return status;
  }

  rocksdb::FileSystem& files_;
  const std::string directory_;
  RegionView& view_;
  FoundEnds ends_;
  std::vector<ViewedLog> logs_;
  std::map<GenerationId, std::uint64_t> whole_bytes_;
};

}  // namespace

Status view_region(rocksdb::FileSystem& files, const std::string& directory, RegionView* view) {
  *view = {};
  return Viewer(files, directory, *view).view();
}

}  // namespace spillway::spill
