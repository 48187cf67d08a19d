// Commands to a run in progress, through a pipe in place of standard input.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "tool/protocol/line_reader.h"
#include "tool/run/control.h"

namespace spillway::tool {
namespace {

class RunControlTest : public ::testing::Test {
 protected:
  RunControlTest() { EXPECT_EQ(::pipe(ends_), 0); }
  ~RunControlTest() override {
    close_input();
    ::close(ends_[0]);
  }

  void say(const std::string& line) {
    const std::string text = line + "\n";
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_input() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  int input() const { return ends_[0]; }

  // The reader has its own thread. A minute is enough on a busy machine.
  template <typename Condition>
  static bool comes_true(const Condition& condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST_F(RunControlTest, EndsThePhaseThatIsNamedAndNoOther) {
  LineReader lines(input());
  const RunControl control(lines, 3);
  EXPECT_FALSE(control.should_end_phase(0));
  say(R"({"end_phase": 1})");
  EXPECT_TRUE(comes_true([&] { return control.should_end_phase(1); }));
  EXPECT_FALSE(control.should_end_phase(0));
  EXPECT_FALSE(control.should_end_phase(2));
  say(R"({"end_phase": 2})");
  EXPECT_TRUE(comes_true([&] { return control.should_end_phase(2); }));
  EXPECT_FALSE(control.has_failed());
  EXPECT_TRUE(control.status());
}

TEST_F(RunControlTest, TheEndOfTheInputAsksForNothing) {
  LineReader lines(input());
  {
    const RunControl control(lines, 1);
    close_input();
    EXPECT_FALSE(control.should_end_phase(0));
    EXPECT_FALSE(control.has_failed());
  }
}

class RefusedCommand : public RunControlTest,
                       public ::testing::WithParamInterface<std::pair<const char*, const char*>> {};

TEST_P(RefusedCommand, IsReportedWithItsLineAndNoLaterOneIsRead) {
  const auto& [command, complaint] = GetParam();
  LineReader lines(input());
  const RunControl control(lines, 2);
  say(R"({"end_phase": 0})");
  say(command);
  say(R"({"end_phase": 1})");
  ASSERT_TRUE(comes_true([&] { return control.has_failed(); }));
  EXPECT_EQ(control.status().fault(), Fault::bad_input);
  EXPECT_NE(control.status().message().find("line 2: "), std::string::npos) << control.status().message();
  EXPECT_NE(control.status().message().find(complaint), std::string::npos) << control.status().message();
  EXPECT_FALSE(control.should_end_phase(1));
}

INSTANTIATE_TEST_SUITE_P(Commands, RefusedCommand,
                         ::testing::Values(std::pair{"end_phase 1", "not a command of a run"},
                                           std::pair{"[1]", "not a command of a run"},
                                           std::pair{R"({"end_phase": -1})", "not a command of a run"},
                                           std::pair{R"({"end_phase": "1"})", "not a command of a run"},
                                           std::pair{R"({"end_phase": 1, "more": 0})", "not a command of a run"},
                                           std::pair{R"({"end_phase": 2})", "the run has 2 phases"}));

}  // namespace
}  // namespace spillway::tool
