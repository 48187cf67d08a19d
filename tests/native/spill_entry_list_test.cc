// The list of entries against a vector: what was appended is there in order, unmoved, aligned, and counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "spill/live/entry_list.h"

namespace spillway::spill {
namespace {

// Mostly of short keys, some empty, and some larger than the largest block.
std::string random_key(std::mt19937_64& random, int i) {
  const std::size_t bytes = i % 1000 == 999 ? (std::size_t{3} << 20) + static_cast<std::size_t>(i) : random() % 200;
  std::string key(bytes, static_cast<char>('a' + i % 26));
  for (std::size_t at = 0; at < bytes && at < 8; ++at) key[at] = static_cast<char>(random());
  return key;
}

TEST(EntryList, HoldsWhatWasAppendedInOrder) {
  in_commit_queue.assume_held();
  std::mt19937_64 random(1);
  EntryList list;
  struct Appended {
    const Entry* entry;
    std::string key;
  };
  std::vector<Appended> model;
  std::size_t bytes = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string key = random_key(random, i);
    Entry fields;
    fields.sequence = static_cast<Sequence>(i + 1);
    fields.value = {.offset = ~std::uint64_t{0} - i, .from = ~0U, .length = 7};
    fields.column_family = ~0U;
    fields.kind = i % 3 == 0 ? Kind::remove : Kind::put;
    const Entry* const entry = list.append(fields, key);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(entry) % alignof(Entry), 0U);
    bytes += sizeof(Entry) + key.size();
    ASSERT_GE(list.memory_bytes(), bytes);
    ASSERT_EQ(list.newest(), entry);
    ASSERT_EQ(list.size(), static_cast<std::uint64_t>(i + 1));
    model.push_back({entry, std::move(key)});
  }
  EntryList::Place place;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const Entry& entry = list.next(&place);
    ASSERT_EQ(&entry, model[i].entry);
    ASSERT_EQ(entry.sequence, i + 1);
    ASSERT_EQ(entry.value.offset, ~std::uint64_t{0} - i);
    ASSERT_EQ(entry.value.from, ~0U);
    ASSERT_EQ(entry.column_family, ~0U);
    ASSERT_EQ(entry.kind, i % 3 == 0 ? Kind::remove : Kind::put);
    ASSERT_TRUE(entry.key() == model[i].key) << i;
  }
}

TEST(EntryList, APlaceBehindTheLastGoesOnWhereTheListGrows) {
  in_commit_queue.assume_held();
  EntryList list;
  EntryList::Place place;
  for (Sequence sequence = 1; sequence <= 10'000; ++sequence) {  // through many ends of blocks
    Entry fields;
    fields.sequence = sequence;
    list.append(fields, std::string(sequence % 90, 'k'));
    ASSERT_EQ(list.next(&place).sequence, sequence);
  }
}

TEST(EntryList, ASmallOneTakesLittle) {
  in_commit_queue.assume_held();
  EntryList list;
  EXPECT_EQ(list.memory_bytes(), 0U);
  list.append({}, "a");
  EXPECT_EQ(list.memory_bytes(), std::size_t{4} << 10);
}

// An eighth is unused at most, and a header; entries too large for what is left of a block leave that unused as well.
TEST(EntryList, LittleIsUnused) {
  in_commit_queue.assume_held();
  for (const std::size_t key_bytes : {0, 4, 16, 32, 100}) {
    EntryList list;
    const std::string key(key_bytes, 'k');
    std::size_t used = 0;
    while (list.size() < 300'000) {
      used += list.append({}, key)->bytes();
      if (list.size() < 1000) continue;
      ASSERT_LE(list.memory_bytes(), used + used / 7 + 4096) << list.size() << " keys of " << key_bytes;
    }
  }
}

// For the thread sanitizer, and for the promise that a reader of the first size() entries never leaves them.
TEST(EntryList, IsReadWhileItGrows) {
  EntryList list;
  constexpr std::uint64_t kEntries = 100'000;
  const auto read = [&] {
    EntryList::Place behind;  // goes on behind what it has read
    std::uint64_t read_before = 0;
    while (read_before < kEntries) {
      const std::uint64_t size = list.size();
      for (; read_before < size; ++read_before) {
        const Entry& entry = list.next(&behind);
        ASSERT_EQ(entry.sequence, read_before + 1);
        ASSERT_EQ(entry.key().size(), entry.sequence % 50);
      }
    }
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) readers.emplace_back(read);
  in_commit_queue.assume_held();
  for (Sequence sequence = 1; sequence <= kEntries; ++sequence) {
    Entry fields;
    fields.sequence = sequence;
    list.append(fields, std::string(sequence % 50, 'k'));
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace spillway::spill
