#include "faults/power_loss.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/file_bytes.h"
#include "faults/drive_journal.h"

namespace spillway::faults {

namespace {

namespace fs = std::filesystem;
using Kind = DriveEvent::Kind;
using Random = std::mt19937_64;

// A random number from 0 to `last`.
std::uint64_t any_of(Random& random, std::uint64_t last) {
  return std::uniform_int_distribution<std::uint64_t>(0, last)(random);
}

// How much of `count` survives: nothing, all, or something between, with equal probability.
std::uint64_t any_part(Random& random, std::uint64_t count) {
  switch (any_of(random, 2)) {
    case 0:
      return 0;
    case 1:
      return count;
    default:
      return any_of(random, count);
  }
}

struct PendingWrite {
  std::size_t index = 0;  // in the journal
  const DriveEvent* event = nullptr;
};

// What is certainly durable, and what is pending.
struct DriveState {
  FileTable durable;                                   // names only
  std::vector<const DriveEvent*> names;                // links, unlinks, renames that are pending, in order
  std::vector<std::size_t> name_index;                 // their indexes in the journal
  std::map<FileId, std::vector<PendingWrite>> writes;  // pending ones, in order
};

std::string directory_of(const DriveEvent& event) {
  return parent_of(event.kind == Kind::rename ? event.to : event.path);
}

void make_durable(DriveState* state, const std::string& directory) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < state->names.size(); ++i) {
    if (directory_of(*state->names[i]) == directory) {
      state->durable.apply(*state->names[i]);
      continue;
    }
    state->names[kept] = state->names[i];
    state->name_index[kept++] = state->name_index[i];
  }
  state->names.resize(kept);
  state->name_index.resize(kept);
}

DriveState state_after(const std::vector<DriveEvent>& events) {
  DriveState state;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const DriveEvent& event = events[i];
    switch (event.kind) {
      case Kind::write:
        state.writes[event.id].push_back({i, &event});
        break;
      case Kind::sync:
        std::erase_if(state.writes[event.id], [&](const PendingWrite& one) { return one.index < event.length; });
        break;
      case Kind::sync_directory:
        make_durable(&state, event.path);
        break;
      default:
        state.names.push_back(&event);
        state.name_index.push_back(i);
    }
  }
  return state;
}

// Reads the file's contents as a program saw them until the power failed.
Status read_file(const std::string& path, std::string* bytes) {
  return read_file_bytes(path, bytes) ? Status() : Status::io_error("cannot read " + path);
}

// Undoes a write, except its first `keep` bytes.
void undo(const DriveEvent& write, std::uint64_t keep, std::string* bytes) {
  std::string kept;
  if (write.offset < bytes->size()) kept = bytes->substr(write.offset, keep);
  bytes->resize(write.size_before);
  if (bytes->size() < write.offset + write.before.size()) bytes->resize(write.offset + write.before.size());
  bytes->replace(write.offset, write.before.size(), write.before);
  if (kept.empty()) return;
  if (bytes->size() < write.offset + kept.size()) bytes->resize(write.offset + kept.size());
  bytes->replace(write.offset, kept.size(), kept);
}

// How many bytes of a write survive if the power fails after `reached` of them. These are whole sectors; or with
// `within_sectors`, up to the end of the last sector, whose remaining bytes are then arbitrary.
std::uint64_t tear(const DriveEvent& write, std::uint64_t reached, bool within_sectors, Random& random,
                   std::string* bytes) {
  if (reached == 0 || reached >= write.length) return std::min(reached, write.length);
  const std::uint64_t end = write.offset + reached;
  const std::uint64_t sector = end - end % kSectorBytes;
  if (any_of(random, 1) == 0 || !within_sectors) return sector > write.offset ? sector - write.offset : 0;
  const std::uint64_t last =
      std::min({sector + kSectorBytes, write.offset + write.length, std::uint64_t{bytes->size()}});
  for (std::uint64_t at = end; at < last; ++at) (*bytes)[at] = static_cast<char>(any_of(random, 255));
  return std::max(last, end) - write.offset;
}

// Keeps of the pending writes the first `survivors`, and `reached` bytes of the next one.
void lose_writes(const std::vector<PendingWrite>& writes, std::size_t survivors, std::uint64_t reached,
                 bool within_sectors, Random& random, std::string* bytes) {
  for (std::size_t i = writes.size(); i > survivors + 1; --i) undo(*writes[i - 1].event, 0, bytes);
  if (survivors == writes.size()) return;
  const DriveEvent& torn = *writes[survivors].event;
  undo(torn, tear(torn, reached, within_sectors, random, bytes), bytes);
}

// A random number of bytes of the pending writes survives, or none. Returns whether any is lost.
bool lose_any(const std::vector<PendingWrite>& writes, bool loses_all, bool within_sectors, Random& random,
              std::string* bytes) {
  std::uint64_t pending = 0;
  for (const PendingWrite& write : writes) pending += std::max<std::uint64_t>(1, write.event->length);
  std::uint64_t left = loses_all ? 0 : any_part(random, pending);
  const bool loses_any = left < pending;
  std::size_t survivors = 0;
  for (; survivors < writes.size(); ++survivors) {
    const std::uint64_t cost = std::max<std::uint64_t>(1, writes[survivors].event->length);
    if (left < cost) break;
    left -= cost;
  }
  lose_writes(writes, survivors, left, within_sectors, random, bytes);
  return loses_any;
}

// Whether it is a log of RocksDB. Log numbers have leading zeros, so logs sort by number.
bool is_log(const std::string& name) {
  const fs::path path(name);
  const std::string number = path.stem().string();
  return path.extension() == ".log" && !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
}

// The pending events before index `moment` of the journal survive, and part of the write at that index.
void lose_after(const std::vector<PendingWrite>& writes, std::size_t moment, bool within_sectors, Random& random,
                std::string* bytes) {
  std::size_t survivors = 0;
  while (survivors < writes.size() && writes[survivors].index < moment) ++survivors;
  const bool torn = survivors < writes.size() && writes[survivors].index == moment;
  lose_writes(writes, survivors, torn ? any_of(random, writes[survivors].event->length) : 0, within_sectors, random,
              bytes);
}

Status write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Status() : Status::io_error("cannot write " + path);
}

Status copy_directories(const std::string& root, const std::string& to) {
  std::error_code failure;
  if (!fs::create_directories(to, failure))
    return Status::io_error("cannot make " + to + ": it is there, or cannot be");
  for (const auto& entry : fs::recursive_directory_iterator(root, failure)) {
    if (entry.is_directory()) fs::create_directories(to + entry.path().string().substr(root.size()), failure);
  }
  return failure ? Status::io_error("cannot copy the directories of " + root + ": " + failure.message()) : Status();
}

}  // namespace

Status power_loss(const std::string& root, const std::string& to, const PowerLoss& loss) {
  Random random(loss.seed);
  Result<std::vector<DriveEvent>> events = read_journal(root);
  if (!events) return events.status();
  if (Status status = copy_directories(root, to); !status) return status;

  DriveState state = state_after(*events);
  const std::uint64_t moment = any_part(random, events->size());
  const std::uint64_t names = any_part(random, state.names.size());
  for (std::size_t i = 0; i < state.names.size(); ++i) {
    if (loss.in_order ? state.name_index[i] < moment : i < names) state.durable.apply(*state.names[i]);
  }
  std::set<std::string> cut_logs;         // directories with a log that has lost something
  std::map<FileId, std::string> written;  // the first name of each file; the others are links to it
  for (const auto& [name, id] : state.durable.names) {
    const std::string path = to + "/" + name;
    std::error_code is_there;
    fs::create_directories(fs::path(path).parent_path(), is_there);  // the source of a rename that is lost
    if (const auto [first, is_new] = written.emplace(id, path); !is_new) {
      std::error_code failure;
      fs::create_hard_link(first->second, path, failure);
      if (failure) return Status::io_error("cannot link " + path + ": " + failure.message());
      continue;
    }
    std::string bytes;
    if (Status status = read_file(path_of_file(root, id), &bytes); !status) return status;
    const bool within_sectors = name.find("MANIFEST-") == std::string::npos;  // see the fault envelope
    if (const auto pending = state.writes.find(id); pending != state.writes.end()) {
      if (loss.in_order) {
        lose_after(pending->second, moment, within_sectors, random, &bytes);
      } else {
        const bool keeps_order = is_log(name) && !loss.holes_between_logs;
        const std::string directory = parent_of(name);
        const bool loses_all = keeps_order && cut_logs.contains(directory);
        const bool loses_any = lose_any(pending->second, loses_all, within_sectors, random, &bytes);
        if (keeps_order && loses_any) cut_logs.insert(directory);
      }
    }
    if (Status status = write_file(path, bytes); !status) return status;
  }
  return {};
}

}  // namespace spillway::faults
