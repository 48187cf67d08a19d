// What a loss of power leaves of an engine's files, for any engine on a Volume: a journal of the events of the volume's
// files, which outlives a killed process, and a cut of the directory to what had reached the drive.
//
// Fault envelope: names are durable at once and in order (like those of a journalling file system whose directory the
// engine syncs). Contents are durable after a sync that began after they were written. Any part of the rest may
// survive: a file is cut at a random place after its last durable byte, and bytes before it that were written without a
// sync are zeroed or kept at random, in pages.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "fs/volume_observer.h"

namespace spillway::engine {

// Writes each event with one write(2), so an event reported before a kill is in the file.
class VolumeJournal : public fs::VolumeObserver {
 public:
  explicit VolumeJournal(const std::string& path) : fd_(::open(path.c_str(), O_CREAT | O_APPEND | O_WRONLY, 0600)) {}
  ~VolumeJournal() override { ::close(fd_); }
  VolumeJournal(const VolumeJournal&) = delete;
  VolumeJournal& operator=(const VolumeJournal&) = delete;

  void named(std::uint64_t file, const std::string& path) override { tell('n', file, 0, 0, path); }
  void unnamed(const std::string& path) override { tell('u', 0, 0, 0, path); }
  void wrote(std::uint64_t file, std::uint64_t offset, std::uint64_t length) override {
    tell('w', file, offset, length);
  }
  void truncated(std::uint64_t file, std::uint64_t size) override { tell('t', file, size, 0); }
  void sync_begins(std::uint64_t file) override { tell('b', file, 0, 0); }
  void synced(std::uint64_t file) override { tell('s', file, 0, 0); }

 private:
  void tell(char event, std::uint64_t file, std::uint64_t a, std::uint64_t b, const std::string& path = "-") {
    std::ostringstream line;
    line << event << ' ' << file << ' ' << a << ' ' << b << ' ' << path << '\n';
    const std::string text = line.str();
    if (::write(fd_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::perror("journal");
  }

  const int fd_;
};

// The state of every file at the end of the journal.
class PowerCut {
 public:
  explicit PowerCut(const std::string& journal) { go_on(journal); }

  // Continues with a further life on the remaining files, whose volume found the files by name.
  void go_on(const std::string& journal) {
    life_ += kMostFiles;
    std::ifstream lines(journal);
    std::string line;
    while (std::getline(lines, line)) read(line);
  }

  // Leaves in the directory what the drive would have. Returns how many files lost something.
  int apply(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    int changed = 0;
    for (const auto& [path, file] : names_) changed += cut(path, files_[file], random) ? 1 : 0;
    return changed;
  }

 private:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kMostFiles = std::uint64_t{1} << 32;   // per life
  using Ranges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // [begin, end)

  struct File {
    std::uint64_t durable_size = 0;
    std::uint64_t size = 0;
    Ranges unsynced;
    Ranges syncing;  // ranges of `unsynced` that the sync in progress covers
    std::uint64_t syncing_size = 0;
  };

  void read(const std::string& line) {
    std::istringstream in(line);
    char event = 0;
    std::uint64_t number = 0;
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    std::string path;
    in >> event >> number >> a >> b >> path;
    if (in.fail()) return;  // the last, incomplete line of a killed process
    number += life_;
    if (event == 'n') {
      const auto before = names_.find(path);
      if (before != names_.end() && before->second < life_ && !files_.contains(number)) {
        files_[number] = files_[before->second];
      }
      names_[path] = number;
    }
    File& file = files_[number];
    if (event == 'u') names_.erase(path);
    if (event == 'w') {
      file.unsynced.emplace_back(a, a + b);
      file.size = std::max(file.size, a + b);
    }
    if (event == 't') file.size = file.durable_size = a;
    if (event == 'b') {
      file.syncing = file.unsynced;
      file.syncing_size = file.size;
    }
    if (event == 's') {
      file.durable_size = std::max(file.durable_size, file.syncing_size);
      file.unsynced.erase(file.unsynced.begin(),
                          file.unsynced.begin() + static_cast<std::ptrdiff_t>(file.syncing.size()));
      file.syncing.clear();
    }
  }

  static bool cut(const std::string& path, const File& file, std::mt19937_64& random) {
    std::error_code missing;
    const std::uint64_t there = std::filesystem::file_size(path, missing);
    if (missing || file.unsynced.empty()) return false;
    std::uint64_t end = there;
    if (there > file.durable_size) {
      end = file.durable_size + random() % (there - file.durable_size + 1);
      std::filesystem::resize_file(path, end);
    }
    bool changed = end < there;
    std::fstream bytes(path, std::ios::in | std::ios::out | std::ios::binary);
    for (const auto& [begin, behind] : file.unsynced) {
      for (std::uint64_t at = begin; at < std::min(behind, end); at = (at / kPage + 1) * kPage) {
        if (random() % 2 == 0) continue;
        const std::uint64_t to = std::min({(at / kPage + 1) * kPage, behind, end});
        bytes.seekp(static_cast<std::streamoff>(at));
        bytes.write(std::string(to - at, '\0').data(), static_cast<std::streamsize>(to - at));
        changed = true;
      }
    }
    return changed;
  }

  std::uint64_t life_ = 0;  // added to the numbers of its files
  std::map<std::string, std::uint64_t> names_;
  std::map<std::uint64_t, File> files_;
};

}  // namespace spillway::engine
