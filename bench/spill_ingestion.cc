// How long writers are kept out while files are ingested: in one call, or prepared before (RocksDB 11.5 and later).
// Prints one JSON document.
//
//   bench_spill_ingestion [DIRECTORY]     default: a temporary directory
//
// A RocksDB in a directory of this machine takes 1, 16, 64 and 256 MiB in sorted files of at most 64 MiB, linked (as a
// rollback does) or copied (as it does where links are not taken). Writers wait for `commit_ms`; `prepare_ms` passes
// before, while they write. In turns, kRounds times: median, least and most.
#include <rocksdb/convenience.h>
#include <rocksdb/sst_file_writer.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "spill/compat/db_out.h"
#include "spill/compat/file_ingestion.h"

namespace {

using namespace spillway::spill;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 7;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kFileBytes = 64 * kMiB;
constexpr std::size_t kValueBytes = 1024;

enum class Phases : bool { one, two };
enum class Into : bool { link, copy };

void require(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

double ms_since(Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

struct Times {
  double prepare_ms = 0;
  double commit_ms = 0;
};

class Bench {
 public:
  explicit Bench(std::filesystem::path directory) : directory_(std::move(directory)) {
    options_.create_if_missing = true;
    options_.compression = rocksdb::kNoCompression;
    options_.disable_auto_compactions = true;
    options_.level0_slowdown_writes_trigger = options_.level0_stop_writes_trigger = 1 << 20;
    for (char& byte : noise_) byte = static_cast<char>(random_());
    rocksdb::DB* db = nullptr;
    require(rocksdb::DB::Open(options_, (directory_ / "db").string(), DbOut(&db)));
    db_.reset(db);
  }

  Times ingest(std::uint64_t bytes, Into into, Phases phases) {
    FileIngestion ingestion(*db_, {arguments(files_of(bytes), into)});
    Times times;
    if (phases == Phases::two) {
      const auto began = Clock::now();
      require(ingestion.prepare());
      times.prepare_ms = ms_since(began);
    }
    const auto began = Clock::now();
    require(ingestion.commit());
    times.commit_ms = ms_since(began);
    for (const auto& file : std::filesystem::directory_iterator(directory_)) {
      if (file.is_regular_file()) std::filesystem::remove(file.path());
    }
    return times;
  }

  // What was ingested goes, so that no round finds more of it than another.
  void empty() {
    const rocksdb::Slice first("0");
    const rocksdb::Slice last("~");
    require(rocksdb::DeleteFilesInRange(db_.get(), db_->DefaultColumnFamily(), &first, &last));
  }

 private:
  rocksdb::IngestExternalFileArg arguments(std::vector<std::string> files, Into into) const {
    rocksdb::IngestExternalFileArg one;
    one.column_family = db_->DefaultColumnFamily();
    one.external_files = std::move(files);
    one.options.move_files = into == Into::link;
    one.options.write_global_seqno = false;
    return one;
  }

  std::vector<std::string> files_of(std::uint64_t bytes) {
    std::vector<std::string> files;
    std::uint64_t key = 0;
    for (std::uint64_t done = 0; done < bytes; done += kFileBytes) {
      rocksdb::SstFileWriter writer({}, options_);
      files.push_back((directory_ / (std::to_string(files.size()) + ".sst")).string());
      require(writer.Open(files.back()));
      for (std::uint64_t in_file = done; in_file < std::min(bytes, done + kFileBytes); in_file += kValueBytes) {
        char text[24];
        const int length = std::snprintf(text, sizeof text, "%016llu", static_cast<unsigned long long>(++key));
        require(writer.Put({text, static_cast<std::size_t>(length)}, {noise_.data() + random_() % kMiB, kValueBytes}));
      }
      require(writer.Finish());
    }
    return files;
  }

  const std::filesystem::path directory_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  std::mt19937_64 random_{1};
  std::string noise_ = std::string(2 * kMiB, '\0');  // values are pieces of it
};

Json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"median", values[values.size() / 2]}, {"min", values.front()}, {"max", values.back()}};
}

Json row(std::uint64_t mib, Into into, Phases phases, const std::vector<Times>& rounds) {
  std::vector<double> prepare;
  std::vector<double> commit;
  for (const Times& one : rounds) {
    prepare.push_back(one.prepare_ms);
    commit.push_back(one.commit_ms);
  }
  return {{"mib", mib},
          {"files", into == Into::link ? "linked" : "copied"},
          {"phases", phases == Phases::one ? 1 : 2},
          {"prepare_ms", spread(prepare)},
          {"commit_ms", spread(commit)}};
}

Json measure(const std::filesystem::path& directory) {
  Bench bench(directory);
  Json rows = Json::array();
  for (const std::uint64_t mib : {1, 16, 64, 256}) {
    for (const Into into : {Into::link, Into::copy}) {
      std::map<Phases, std::vector<Times>> rounds;
      for (int round = 0; round < kRounds; ++round) {
        for (const Phases phases : {Phases::one, Phases::two}) {
          rounds[phases].push_back(bench.ingest(mib * kMiB, into, phases));
          bench.empty();
        }
      }
      for (const auto& [phases, times] : rounds) rows.push_back(row(mib, into, phases, times));
    }
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  std::string place = argc > 1 ? argv[1] : (std::filesystem::temp_directory_path() / "spill_ingestion_XXXXXX").string();
  if (argc <= 1 && mkdtemp(place.data()) == nullptr) return 1;
  const auto directory = std::filesystem::path(place) / "files";
  try {
    std::filesystem::create_directories(directory);
    const Json rows = measure(directory);
    std::cout << Json{{"rocksdb", rocksdb::GetRocksVersionAsString(true)}, {"rounds", kRounds}, {"rows", rows}}.dump(1)
              << "\n";
  } catch (const std::exception& error) {
    std::cerr << "bench_spill_ingestion: " << error.what() << "\n";
    return 1;
  }
  std::filesystem::remove_all(argc > 1 ? directory : std::filesystem::path(place));
}
