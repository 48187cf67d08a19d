#include "lsm/queries.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lsm/processor.h"
#include "ssd/structures/random.h"

namespace spillway::lsm {
namespace {

constexpr double kFirstReadAhead = 8 * 1024;
constexpr double kMostReadAhead = 256 * 1024;
constexpr std::size_t kReadsBeforeReadAhead = 2;
constexpr std::uint64_t kRoundsBetweenAsking = 4096;  // some milliseconds of the processor

// What a thread does next: compute, then perhaps read. Or it reads a run on, block by block: a scan of any length is
// one step for each run.
struct Step {
  double compute_ns = 0;
  double read_bytes = 0;  // 0: none
  const SortedFile* file = nullptr;
  bool of_value = false;  // that is separated
  double left_bytes = 0;  // of the run's further blocks, this read included
  double ahead = kFirstReadAhead;
  std::size_t reads = 1;
};

// False: the step has no further read.
bool read_on(Step& step, double block_size) {
  step.left_bytes -= step.read_bytes;
  if (step.left_bytes <= 0) return false;
  step.read_bytes = block_size;
  if (++step.reads > kReadsBeforeReadAhead) {
    step.read_bytes = std::max(step.read_bytes, step.ahead);
    step.ahead = std::min(kMostReadAhead, step.ahead * 2);
  }
  return true;
}

struct Thread {
  std::vector<Step> steps;
  std::size_t at = 0;
  Nanos began = 0;
  bool reading = false;
};

class Queries {
 public:
  Queries(const QueryRun& run, DriveFiles& files, Nanos now)
      : run_(run), files_(files), now_(now), random_(run.seed), processor_(run.spec.host.cores) {
    for (std::size_t l = 0; l < run.tree.levels(); ++l) {
      if (l > 0 && !run.tree.level(l).empty()) runs_.push_back(run.tree.level(l));
      if (l > 0) continue;
      for (const File& file : run.tree.level(0)) runs_.push_back({file});
    }
    threads_.resize(run.query.threads);
  }

  std::optional<QueryFigures> run(Nanos& end) {
    const Nanos began = now_;
    for (std::uint32_t t = 0; t < threads_.size(); ++t) begin(t);
    std::vector<Owner> ready;
    for (std::uint64_t round = 0; running_ > 0; ++round) {
      if (round % kRoundsBetweenAsking == 0 && !run_.goes_on()) return std::nullopt;
      const auto event = files_.next_event();
      const auto computed_at = processor_.next_done();
      if (!event && !computed_at) break;
      now_ = std::max(now_, !event ? *computed_at : !computed_at ? *event : std::min(*event, *computed_at));
      ready.clear();
      if (event && *event <= now_) files_.advance(now_, ready);
      for (const Owner owner : ready) go_on(owner);
      ready.clear();
      processor_.take_done(now_, ready);
      for (const std::uint32_t thread : ready) computed(thread);
    }
    figures_.seconds = static_cast<double>(now_ - began) / 1e9;
    end = now_;
    return figures_;
  }

 private:
  void begin(std::uint32_t t) {
    if (begun_ == run_.query.operations) return;
    ++begun_;
    ++running_;
    Thread& thread = threads_[t];
    thread.steps.clear();
    thread.at = 0;
    thread.began = now_;
    if (run_.query.kind == QuerySpec::Kind::point) {
      plan_point(thread.steps);
    } else {
      plan_scan(thread.steps);
    }
    compute(t);
  }

  void compute(std::uint32_t t) { processor_.begin(now_, threads_[t].steps[threads_[t].at].compute_ns, t); }

  void computed(std::uint32_t t) {
    const Step& step = threads_[t].steps[threads_[t].at];
    if (step.read_bytes <= 0) return go_on(t);
    const fs::ExtentList& own = step.of_value ? run_.blobs : step.file->place;
    const fs::ExtentList& place = run_.anywhere != nullptr ? *run_.anywhere : own;
    if (place.pages() == 0) return go_on(t);
    ++figures_.block_reads;
    if (step.of_value) return read_value(t, step.read_bytes, place);
    read(t, step.read_bytes, place);
  }

  void read(std::uint32_t t, double bytes, const fs::ExtentList& place) {
    const std::uint64_t pages = std::min(files_.pages_for(bytes), place.pages());
    const std::uint64_t first = random_.below(place.pages() - pages + 1);
    files_.read(now_, place.slice(first, pages), device::Cause::user, t);
  }

  // A value begins anywhere.
  void read_value(std::uint32_t t, double bytes, const fs::ExtentList& place) {
    const double all = static_cast<double>(place.pages()) * static_cast<double>(files_.page_bytes());
    const double offset = random_.uniform() * std::max(0.0, all - bytes);
    files_.read_bytes(now_, place, offset, bytes, device::Cause::user, t);
  }

  void go_on(std::uint32_t t) {
    Thread& thread = threads_[t];
    if (read_on(thread.steps[thread.at], run_.spec.tree.block_size)) return compute(t);
    if (++thread.at < thread.steps.size()) return compute(t);
    figures_.latency.record(now_ - thread.began);
    ++figures_.operations;
    --running_;
    begin(t);
  }

  // A key that exists: its class, in proportion to its keys.
  std::size_t draw_class() {
    double all = 0;
    for (std::size_t c = 0; c < run_.keys.classes(); ++c) all += run_.keys.class_keys(c);
    double at = random_.uniform() * all;
    for (std::size_t c = 0; c + 1 < run_.keys.classes(); ++c) {
      at -= run_.keys.class_keys(c);
      if (at < 0) return c;
    }
    return run_.keys.classes() - 1;
  }

  static const SortedFile* covering(const Files& run, double key) {
    const auto at = std::partition_point(run.begin(), run.end(), [key](const File& file) { return file->high <= key; });
    return at != run.end() && (*at)->low <= key ? at->get() : nullptr;
  }

  // The share of the class's keys at its place that a file holds.
  double share(const SortedFile& file, std::size_t c) const {
    return file.entries[c] / (run_.keys.class_keys(c) * (file.high - file.low));
  }

  // A key that exists. Its newest version is in the first run that holds it; which one that is, is drawn.
  void plan_point(std::vector<Step>& steps) {
    const double key = random_.uniform();
    const std::size_t c = draw_class();
    std::vector<std::pair<const SortedFile*, double>> covers;  // and the probability that the newest version is there
    double in_none = 1;
    double in_any = 0;
    for (const Files& run : runs_) {
      const SortedFile* file = covering(run, key);
      if (file == nullptr) continue;
      const double held = std::min(1.0, share(*file, c));
      const double newest = run_.keys.overwrites() ? in_none * held : held;
      in_none *= 1 - held;
      in_any += newest;
      covers.emplace_back(file, newest);
    }
    // Of a Bloom filter, at its best number of hashes.
    const double false_positive = run_.spec.tree.bits_per_key > 0 ? std::pow(0.6185, run_.spec.tree.bits_per_key) : 1.0;
    steps.push_back({.compute_ns = run_.spec.host.get_ns});
    double at = random_.uniform() * in_any;
    for (const auto& [file, newest] : covers) {
      const bool found = at < newest || file == covers.back().first;
      at -= newest;
      const bool reads = found || random_.uniform() < false_positive;
      const double read_bytes = reads ? run_.spec.tree.block_size : 0;
      steps.push_back({.compute_ns = run_.spec.host.probe_ns, .read_bytes = read_bytes, .file = file});
      if (found) break;
    }
    add_values(steps, covers.empty() ? 0 : 1);
  }

  void add_values(std::vector<Step>& steps, double values) {
    if (run_.entry.blob <= 0) return;
    const Step read = {.compute_ns = run_.spec.host.probe_ns, .read_bytes = run_.entry.blob, .of_value = true};
    steps.insert(steps.end(), static_cast<std::size_t>(values), read);
  }

  void plan_scan(std::vector<Step>& steps) {
    const double key = random_.uniform();
    steps.push_back({.compute_ns = run_.spec.host.get_ns + run_.query.seek_nexts * run_.spec.host.next_ns});
    double density_of_all = 0;
    std::vector<std::pair<const SortedFile*, double>> positioned;
    for (const Files& run : runs_) {
      const SortedFile* file = covering(run, key);
      if (file == nullptr) continue;
      const double density = total(file->entries) / (file->high - file->low);
      density_of_all += density;
      positioned.emplace_back(file, density);
      steps.push_back({.compute_ns = run_.spec.host.probe_ns, .read_bytes = run_.spec.tree.block_size, .file = file});
    }
    for (const auto& [file, density] : positioned) {
      const double pairs = run_.query.seek_nexts * density / density_of_all;
      add_sequential_reads(steps, *file, pairs * run_.entry.file);
    }
    add_values(steps, run_.query.seek_nexts);
  }

  // The blocks of a run behind its first one. A pair lies anywhere in the first block.
  void add_sequential_reads(std::vector<Step>& steps, const SortedFile& file, double bytes) {
    const double left = bytes - random_.uniform() * run_.spec.tree.block_size;
    if (left > 0) steps.push_back({.read_bytes = run_.spec.tree.block_size, .file = &file, .left_bytes = left});
  }

  const QueryRun& run_;
  DriveFiles& files_;
  Nanos now_;
  ssd::Random random_;
  Processor processor_;
  std::vector<Files> runs_;  // newest first
  std::vector<Thread> threads_;
  std::uint64_t begun_ = 0;
  std::uint32_t running_ = 0;
  QueryFigures figures_;
};

}  // namespace

std::optional<QueryFigures> run_query(const QueryRun& run, DriveFiles& files, Nanos& now) {
  return Queries(run, files, now).run(now);
}

}  // namespace spillway::lsm
