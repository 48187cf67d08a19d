// Runs a function when the code under test reaches a named step: each time, or the first time.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/steps.h"

namespace spillway {

// Watches while it exists. Only one may exist at a time.
class StepWatcher : public steps::Watcher {
 public:
  void reached(std::string_view step) final {
    ++inside_;
    on_step(step);
    --inside_;
  }

 protected:
  // The first thing that a destructor of a derived class does: afterwards no thread is in on_step().
  void stop() {
    steps::watch(nullptr);
    while (inside_ > 0) std::this_thread::yield();
  }

 private:
  virtual void on_step(std::string_view step) = 0;

  std::atomic<int> inside_{0};
};

// Each thread that reaches the step calls `what`, unless a call is in progress.
class AtEach final : public StepWatcher {
 public:
  AtEach(std::string step, std::function<void()> what) : step_(std::move(step)), what_(std::move(what)) {
    steps::watch(this);
  }
  ~AtEach() override { stop(); }
  int times() const { return times_; }

 private:
  void on_step(std::string_view step) override {
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
class AtSteps final : public StepWatcher {
 public:
  explicit AtSteps(std::function<void(std::string_view step)> what) : what_(std::move(what)) { steps::watch(this); }
  ~AtSteps() override { stop(); }

 private:
  void on_step(std::string_view step) override { what_(step); }

  const std::function<void(std::string_view)> what_;
};

// The first thread that reaches the step calls `what`.
class AtStep final : public StepWatcher {
 public:
  AtStep(std::string step, std::function<void()> what) : step_(std::move(step)), what_(std::move(what)) {
    steps::watch(this);
  }
  ~AtStep() override { stop(); }
  bool was_reached() const { return was_reached_; }

 private:
  void on_step(std::string_view step) override {
    if (step == step_ && !was_reached_.exchange(true)) what_();
  }

  const std::string step_;
  const std::function<void()> what_;
  std::atomic<bool> was_reached_{false};
};

}  // namespace spillway
