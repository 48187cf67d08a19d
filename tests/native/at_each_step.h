// Runs a function when the code under test reaches a named step: each time, or the first time. Only one of these may
// exist at a time.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/steps.h"

namespace spillway {

// Each thread that reaches the step calls `what`, unless a call is in progress.
class AtEach final : public steps::Watcher {
 public:
  AtEach(std::string step, std::function<void()> what) : step_(std::move(step)), what_(std::move(what)) {
    steps::watch(this);
  }
  ~AtEach() override { steps::watch(nullptr); }
  int times() const { return times_; }

 private:
  void reached(std::string_view step) override {
    if (step != step_ || is_busy_.exchange(true)) return;
    what_();
    ++times_;
    is_busy_ = false;
  }

  const std::string step_;
  const std::function<void()> what_;
  std::atomic<bool> is_busy_{false};
  std::atomic<int> times_{0};
};

// Calls `what` with the name of each step.
class AtSteps final : public steps::Watcher {
 public:
  explicit AtSteps(std::function<void(std::string_view step)> what) : what_(std::move(what)) { steps::watch(this); }
  ~AtSteps() override { steps::watch(nullptr); }

 private:
  void reached(std::string_view step) override { what_(step); }

  const std::function<void(std::string_view)> what_;
};

// The first thread that reaches the step calls `what`.
class AtStep final : public steps::Watcher {
 public:
  AtStep(std::string step, std::function<void()> what) : step_(std::move(step)), what_(std::move(what)) {
    steps::watch(this);
  }
  ~AtStep() override { steps::watch(nullptr); }
  bool was_reached() const { return was_reached_; }

 private:
  void reached(std::string_view step) override {
    if (step == step_ && !was_reached_.exchange(true)) what_();
  }

  const std::string step_;
  const std::function<void()> what_;
  std::atomic<bool> was_reached_{false};
};

}  // namespace spillway
