// The queue of commits: the leader, what is committed together, and what runs while nothing is committed.
#include <gtest/gtest.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "spill/commit/commit_queue.h"

namespace spillway::spill {
namespace {

using rocksdb::Status;
using rocksdb::WriteBatch;

// Records every group. Holds the leader while a test needs it.
class Leads {
 public:
  CommitQueue::CommitGroup lead() {
    return [this](std::span<Commit*> group) {
      EXPECT_EQ(leaders_++, 0);
      sizes_.push_back(group.size());
      for (Commit* one : group) {
        order_.push_back(one);
        one->status = Status::Aborted("led");
      }
      is_leading_ = true;
      while (holds_) std::this_thread::yield();
      EXPECT_EQ(leaders_--, 1);
    };
  }
  void hold() {
    holds_ = true;
    is_leading_ = false;
  }
  void wait_for_leader() const {
    while (!is_leading_) std::this_thread::yield();
  }
  void go() { holds_ = false; }
  const std::vector<std::size_t>& sizes() const { return sizes_; }
  const std::vector<Commit*>& order() const { return order_; }

 private:
  std::atomic<int> leaders_ = 0;
  std::atomic<bool> holds_ = false;
  std::atomic<bool> is_leading_ = false;
  std::vector<std::size_t> sizes_;  // written by one leader at a time
  std::vector<Commit*> order_;
};

// A commit with a given size.
struct Sized {
  explicit Sized(std::size_t bytes = 1) {
    EXPECT_TRUE(batch.Put("k", std::string(bytes, 'v')).ok());
    commit.batch = &batch;
  }
  WriteBatch batch;
  Commit commit;
};

TEST(CommitQueue, ASingleCommitIsAGroup) {
  Leads leads;
  CommitQueue queue(leads.lead());
  Sized one;
  queue.run(one.commit);
  EXPECT_EQ(leads.sizes(), std::vector<std::size_t>{1});
  EXPECT_TRUE(one.commit.status.IsAborted());
}

// A test cannot control whether the others are queued when the leader continues, so it repeats until they were.
TEST(CommitQueue, WaitingCommitsAreCommittedTogetherEachOnce) {
  bool were_together = false;
  for (int attempt = 0; attempt < 500 && !were_together; ++attempt) {
    Leads leads;
    CommitQueue queue(leads.lead());
    leads.hold();
    std::vector<Sized> commits(5);
    std::vector<std::thread> threads;
    threads.emplace_back([&] { queue.run(commits[0].commit); });
    leads.wait_for_leader();
    for (std::size_t i = 1; i < commits.size(); ++i) threads.emplace_back([&, i] { queue.run(commits[i].commit); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + attempt));
    leads.go();
    for (std::thread& one : threads) one.join();
    for (const Sized& one : commits) EXPECT_TRUE(one.commit.status.IsAborted());
    EXPECT_EQ(leads.order().size(), commits.size());
    EXPECT_EQ((std::set<Commit*>(leads.order().begin(), leads.order().end())).size(), commits.size());
    EXPECT_EQ(leads.sizes().front(), 1U);
    were_together = leads.sizes() == std::vector<std::size_t>{1, 4};
  }
  EXPECT_TRUE(were_together);
}

TEST(CommitQueue, AGroupEndsAtItsBytesAndTakesAnyFirst) {
  bool was_cut = false;
  for (int attempt = 0; attempt < 500 && !was_cut; ++attempt) {
    Leads leads;
    CommitQueue queue(leads.lead());
    leads.hold();
    Sized first;
    std::vector<Sized> large;
    for (int i = 0; i < 3; ++i) large.emplace_back(600'000);  // two of them exceed the limit of a group
    std::vector<std::thread> threads;
    threads.emplace_back([&] { queue.run(first.commit); });
    leads.wait_for_leader();
    for (Sized& one : large) one.commit.batch = &one.batch;
    for (Sized& one : large) threads.emplace_back([&] { queue.run(one.commit); });
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + attempt));
    leads.go();
    for (std::thread& one : threads) one.join();
    was_cut = leads.sizes() == std::vector<std::size_t>{1, 1, 1, 1};
    for (const std::size_t size : leads.sizes()) EXPECT_EQ(size, 1U);
  }
  EXPECT_TRUE(was_cut);
  Leads leads;
  CommitQueue queue(leads.lead());
  Sized huge(5'000'000);
  queue.run(huge.commit);
  EXPECT_TRUE(huge.commit.status.IsAborted());
}

TEST(CommitQueue, WhatRunsAloneRunsWhileNothingIsCommitted) {
  std::atomic<int> inside = 0;
  std::atomic<int> alone = 0;
  CommitQueue queue([&](std::span<Commit*> group) {
    EXPECT_EQ(inside++, 0);
    for (Commit* one : group) one->status = Status();
    std::this_thread::yield();
    EXPECT_EQ(inside--, 1);
  });
  const auto runs_alone = [&] {
    EXPECT_EQ(inside++, 0);
    ++alone;
    std::this_thread::yield();
    EXPECT_EQ(inside--, 1);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      Sized one;
      for (int times = 0; times < 500; ++times) queue.run(one.commit);
    });
  }
  threads.emplace_back([&] {
    for (int times = 0; times < 500; ++times) queue.run_alone(runs_alone);
  });
  threads.emplace_back([&] {
    for (int times = 0; times < 500; ++times) EXPECT_TRUE(queue.run_alone_unless_held(runs_alone));
  });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(alone, 1000);
}

// A rollback holds the queue and waits for a flush. The flush calls the queue, and must not wait for the rollback.
TEST(CommitQueue, RunAloneUnlessHeldIsRefusedWhileItIsHeld) {
  CommitQueue queue([](std::span<Commit*>) {});
  std::atomic<int> ran = 0;
  std::vector<bool> turned_away;
  bool was_prepared = false;
  queue.run_held([&] { was_prepared = true; },
                 [&] {
                   EXPECT_TRUE(was_prepared);
                   turned_away.push_back(!queue.run_alone_unless_held([&] { ++ran; }));
                 });
  EXPECT_EQ(turned_away, std::vector<bool>{true});
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(queue.run_alone_unless_held([&] { ++ran; }));  // no longer held
  EXPECT_EQ(ran, 1);
}

TEST(CommitQueue, AWaitingRunAloneUnlessHeldIsRefusedWhenItIsHeld) {
  CommitQueue queue([](std::span<Commit*> group) {
    for (Commit* one : group) one->status = Status();
  });
  std::atomic<bool> is_preparing = false;
  std::atomic<bool> may_go = false;
  std::atomic<bool> was_turned_away = false;
  std::thread holds([&] {
    queue.run_held(
        [&] {
          is_preparing = true;
          while (!may_go) std::this_thread::yield();
        },
        [&] {
          while (!was_turned_away) std::this_thread::yield();  // it need not wait for this to end
        });
  });
  while (!is_preparing) std::this_thread::yield();
  std::thread gives_way([&] {
    EXPECT_FALSE(queue.run_alone_unless_held([] { ADD_FAILURE() << "it ran while the queue was held"; }));
    was_turned_away = true;
  });
  Sized later;
  std::thread commits([&] { queue.run(later.commit); });
  may_go = true;
  holds.join();
  gives_way.join();
  commits.join();
  EXPECT_TRUE(later.commit.status.ok());
}

// Writers of small and of large commits, in a closed loop, where a group is for one of them: each gets as many.
TEST(CommitQueue, WritersTakeTurns) {
  constexpr std::size_t kWriters = 8;
  CommitQueue queue([](std::span<Commit*> group) {
    EXPECT_EQ(group.size(), 1U);
    for (Commit* one : group) one->status = Status();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  queue.limit_groups(1);
  std::atomic<int> left{800};
  std::array<int, kWriters> committed{};
  std::vector<std::thread> writers;
  for (std::size_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      Sized one(w % 2 == 0 ? 10 : 100'000);
      one.commit.batch = &one.batch;
      for (; left-- > 0; ++committed[w]) queue.run(one.commit);
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto [least, most] = std::minmax_element(committed.begin(), committed.end());
  EXPECT_LT(*most - *least, 40) << "of 100 each";
}

}  // namespace
}  // namespace spillway::spill
