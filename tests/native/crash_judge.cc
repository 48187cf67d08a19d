#include "crash_judge.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace spillway::crash {

namespace {

using rocksdb::Status;

// Without the letters that pad values.
std::string shown(const std::string& value) {
  std::string text;
  for (const char one : value) {
    if (text.empty() || one != text.back()) text += one;
  }
  return "\"" + text.substr(0, 160) + "\"";
}

std::string shown(const Contents& contents, const Key& key) {
  const auto found = contents.find(key);
  return found == contents.end() ? "nothing" : shown(found->second);
}

// The keys in which two contents differ, at most three of them.
std::string difference(const Contents& expected, const Contents& found) {
  std::string text;
  int named = 0;
  const auto name = [&](const Key& key) {
    if (++named > 3) return;
    text += " " + key.name + " should be " + shown(expected, key) + " and is " + shown(found, key) + ";";
  };
  for (const auto& [key, value] : expected) {
    if (const auto other = found.find(key); other == found.end() || other->second != value) name(key);
  }
  for (const auto& [key, value] : found) {
    if (!expected.contains(key)) name(key);
  }
  return text;
}

// Reads all of the store by iterators, forwards and backwards. Both must be equal.
Status read_all(Opened& store, Contents* contents) {
  for (unsigned family = 0; family < store.families.size(); ++family) {
    const std::unique_ptr<rocksdb::Iterator> forwards(store.db->NewIterator({}, store.families[family]));
    std::vector<std::string> keys;
    for (forwards->SeekToFirst(); forwards->Valid(); forwards->Next()) {
      keys.push_back(forwards->key().ToString());
      contents->emplace(Key{family, keys.back()}, forwards->value().ToString());
    }
    if (!forwards->status().ok()) return forwards->status();
    const std::unique_ptr<rocksdb::Iterator> backwards(store.db->NewIterator({}, store.families[family]));
    for (backwards->SeekToLast(); backwards->Valid(); backwards->Prev()) {
      if (keys.empty() || keys.back() != backwards->key().ToString())
        return Status::Corruption("backwards is not forwards");
      keys.pop_back();
    }
    if (!backwards->status().ok()) return backwards->status();
    if (!keys.empty()) return Status::Corruption("backwards is shorter than forwards");
  }
  return Status::OK();
}

std::string compare_gets(Opened& store, const Contents& expected, const std::vector<Key>& absent) {
  std::vector<Key> keys = absent;
  for (const auto& [key, value] : expected) keys.push_back(key);
  for (const Key& key : keys) {
    std::string value;
    const Status status = store.db->Get({}, store.families[key.family], key.name, &value);
    const auto found = expected.find(key);
    if (status.IsNotFound() && found == expected.end()) continue;
    if (status.ok() && found != expected.end() && found->second == value) continue;
    return "Get of " + key.name + " should be " + shown(expected, key) + " and is " +
           (status.ok() ? shown(value) : status.ToString());
  }
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::vector<rocksdb::Slice> names;
  for (const Key& key : keys) {
    families.push_back(store.families[key.family]);
    names.emplace_back(key.name);
  }
  std::vector<std::string> values;
  const std::vector<Status> statuses = store.db->MultiGet({}, families, names, &values);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto found = expected.find(keys[i]);
    const bool right =
        found == expected.end() ? statuses[i].IsNotFound() : statuses[i].ok() && values[i] == found->second;
    if (!right) return "MultiGet of " + keys[i].name + " differs from Get";
  }
  return {};
}

// The smallest and the largest number of operations after which a thread's keys would be as they are found.
struct Extent {
  std::uint32_t fewest = 0;
  std::uint32_t most = 0;
};

bool same(const Contents& a, const Contents& b, const Key& key) {
  const auto in_a = a.find(key);
  const auto in_b = b.find(key);
  if (in_a == a.end() || in_b == b.end()) return (in_a == a.end()) == (in_b == b.end());
  return in_a->second == in_b->second;
}

std::optional<Extent> extent_of(Script& script, std::uint32_t begun, const Contents& found) {
  std::optional<Extent> extent;
  for (std::uint32_t n = 0;; ++n) {
    if (script.state() == found) {
      if (!extent) extent = Extent{n, n};
      extent->most = n;
    }
    if (n == begun) return extent;
    // Comparing everything each time is fast enough, because contents are small.
    script.next();
  }
}

// The operation whose state is most similar, for the message.
std::string nearest(Script script, std::uint32_t begun, const Contents& found) {
  std::size_t fewest = SIZE_MAX;
  std::string text;
  for (std::uint32_t n = 0;; ++n) {
    std::size_t wrong = 0;
    for (const auto& [key, value] : script.state()) wrong += same(script.state(), found, key) ? 0 : 1;
    for (const auto& [key, value] : found) wrong += script.state().contains(key) ? 0 : 1;
    if (wrong <= fewest) {
      fewest = wrong;
      text = "nearest is what " + std::to_string(n) + " of " + std::to_string(begun) +
             " would lead to, but:" + difference(script.state(), found);
    }
    if (n == begun) return text;
    script.next();
  }
}

// The number of operations that must survive: all acknowledged ones, or after a loss of power those that a sync made
// durable.
std::uint32_t promised(Script script, const ThreadLedger& thread, bool power_lost) {
  if (!power_lost) return thread.acknowledged;
  std::uint32_t promised = 0;
  for (std::uint32_t n = 0; n < thread.acknowledged; ++n) {
    if (script.next().sync) promised = n + 1;
  }
  return promised;
}

// Finds an operation that is lost although another that began after its acknowledgement survives.
std::string hole(const std::array<Extent, kThreads>& extents, const CrashLedger& ledger) {
  for (unsigned a = 0; a < kThreads; ++a) {
    const ThreadLedger& lost = ledger.threads[a];
    if (extents[a].most >= lost.acknowledged) continue;
    const std::uint64_t acknowledged_at = lost.acknowledged_at[extents[a].most];
    for (unsigned b = 0; b < kThreads; ++b) {
      if (extents[b].fewest == 0) continue;
      const std::uint32_t last = extents[b].fewest - 1;
      if (acknowledged_at < ledger.threads[b].begun_at[last]) {
        return "operation " + std::to_string(extents[a].most) + " of thread " + std::to_string(a) +
               " is lost, but operation " + std::to_string(last) + " of thread " + std::to_string(b) +
               ", which began after that was acknowledged, is there";
      }
    }
  }
  return {};
}

}  // namespace

std::uint64_t script_seed(const CrashPlan& plan, std::uint64_t round) { return plan.seed * 104729 + round; }

std::uint64_t History::settle(const CrashLedger& ledger) {
  std::uint64_t lost = 0;
  for (unsigned i = 0; i < kThreads; ++i) {
    if (round > 0) {
      Script script(script_seed(*plan, round), i, plan->kinds, std::move(base[i]));
      for (std::uint32_t n = 0; n < ledger.survivors[i]; ++n) script.next();
      base[i] = script.state();
      lost += begun[i] - std::min(begun[i], ledger.survivors[i]);
    }
    begun[i] = ledger.threads[i].begun;
  }
  return lost;
}

Claim History::claim(const CrashLedger& ledger) const {
  Claim claim{.plan = plan, .round = round, .base = base};
  for (unsigned i = 0; i < kThreads && round > 0; ++i) {
    claim.due[i] = promised(Script(script_seed(*plan, round), i, plan->kinds, base[i]), ledger.threads[i], power_lost);
    claim.begun[i] = ledger.threads[i].begun;
  }
  return claim;
}

Claim History::claim_of_copy(const CrashLedger& ledger) const {
  Claim claim{.plan = plan, .round = round, .base = base, .due = ledger.copy_due};
  for (unsigned i = 0; i < kThreads; ++i) claim.begun[i] = ledger.threads[i].begun;
  return claim;
}

Judgement judge(Opened& store, const Claim& claim, const CrashLedger& ledger) {
  Judgement judgement;
  Contents all;
  if (const Status status = read_all(store, &all); !status.ok()) {
    judgement.failure = "cannot be read in order: " + status.ToString();
    return judgement;
  }
  for (auto& [key, value] : all) {
    for (unsigned i = 0; i < kThreads; ++i) {
      if (Script::owns(i, key)) judgement.contents[i].emplace(key, value);
    }
  }
  std::array<Extent, kThreads> extents{};
  for (unsigned i = 0; i < kThreads && claim.round > 0; ++i) {
    const Script script(script_seed(*claim.plan, claim.round), i, claim.plan->kinds, claim.base[i]);
    Script replayed = script;
    const auto extent = extent_of(replayed, claim.begun[i], judgement.contents[i]);
    const std::string who = "thread " + std::to_string(i) + ": ";
    if (!extent) {
      judgement.failure = who + "no number of its operations leads to what is found; " +
                          nearest(script, claim.begun[i], judgement.contents[i]);
      return judgement;
    }
    if (extent->most < claim.due[i]) {
      judgement.failure = who + std::to_string(claim.due[i]) + " operations were promised to survive, " +
                          std::to_string(extent->most) + " are there";
      return judgement;
    }
    extents[i] = *extent;
    judgement.survivors[i] = extent->most;
  }
  if (claim.round > 0) judgement.failure = hole(extents, ledger);
  for (unsigned i = 0; i < kThreads && judgement.failure.empty(); ++i) {
    judgement.failure = compare_with_reads(store, i, judgement.contents[i]);
  }
  return judgement;
}

std::string compare_with_reads(Opened& store, unsigned thread, const Contents& expected) {
  Contents found;
  for (unsigned family = 0; family < store.families.size(); ++family) {
    rocksdb::ReadOptions options;
    const std::string begin = std::to_string(thread) + "/";
    const std::string end = std::to_string(thread) + "0";  // the byte after '/'
    const rocksdb::Slice bound(end);
    options.iterate_upper_bound = &bound;
    const std::unique_ptr<rocksdb::Iterator> iterator(store.db->NewIterator(options, store.families[family]));
    for (iterator->Seek(begin); iterator->Valid(); iterator->Next()) {
      found.emplace(Key{family, iterator->key().ToString()}, iterator->value().ToString());
    }
    if (!iterator->status().ok()) return "an iterator says " + iterator->status().ToString();
  }
  if (found != expected) return "in order," + difference(expected, found);
  std::vector<Key> absent;
  for (unsigned n = 0; n < 24; ++n) {
    const Key key{0, std::to_string(thread) + "/p" + (n < 10 ? "0" : "") + std::to_string(n)};
    if (!expected.contains(key)) absent.push_back(key);
  }
  return compare_gets(store, expected, absent);
}

}  // namespace spillway::crash
