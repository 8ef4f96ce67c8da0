#include "headrace/schedule/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lists.h"

namespace headrace::schedule {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Written {
  const char* text;
  Action action;
};

const std::vector<Written>& written() {
  static const std::vector<Written> all{
      {"2F0", {.stage = 2, .kind = Kind::kForward, .microbatch = 0}},
      {"2B0", {.stage = 2, .kind = Kind::kBackward, .microbatch = 0}},
      {"2I0", {.stage = 2, .kind = Kind::kInputGradient, .microbatch = 0}},
      {"2W0", {.stage = 2, .kind = Kind::kWeightGradient, .microbatch = 0}},
      {"11R12", {.stage = 11, .kind = Kind::kRecompute, .microbatch = 12}},
      {"0U", {.stage = 0, .kind = Kind::kUpdate}},
      {"3NORM", {.stage = 3, .kind = Kind::kNorm}},
      {"3REDUCE_TIE", {.stage = 3, .kind = Kind::kReduceTie}},
      {"3REDUCE_GRAD", {.stage = 3, .kind = Kind::kReduceGradient}},
      {"1SEND_F0", {.stage = 1, .kind = Kind::kSendForward, .microbatch = 0}},
      {"2UNSHARD", {.stage = 2, .kind = Kind::kUnshard}},
      {"2WAIT_FETCH7", {.stage = 2, .kind = Kind::kWaitFetch, .microbatch = 7}},
      {"2F0@1", {.stage = 2, .kind = Kind::kForward, .microbatch = 0, .version = 1}},
      {"2F0#1", {.stage = 2, .kind = Kind::kForward, .microbatch = 0, .replica = 1}},
      {"0SEND_F4>3[skip/1]",
       {.stage = 0,
        .kind = Kind::kSendForward,
        .microbatch = 4,
        .peer_stage = 3,
        .value = "skip/1"}},
      {"3RECV_F4<0[a%2C%20b]#2",
       {.stage = 3,
        .kind = Kind::kRecvForward,
        .microbatch = 4,
        .peer_stage = 0,
        .value = "a, b",
        .replica = 2}},
      {"(0F3;3B1)OVERLAP_F_B",
       {.kind = Kind::kOverlapForwardBackward,
        .parts = {{.stage = 0, .kind = Kind::kForward, .microbatch = 3},
                  {.stage = 3, .kind = Kind::kBackward, .microbatch = 1}}}},
  };
  return all;
}

TEST(ActionText, IsWrittenAsInTheGrammar) {
  for (const auto& [text, action] : written()) {
    EXPECT_EQ(to_text(action), text);
  }
}

TEST(ActionText, IsReadAsInTheGrammar) {
  for (const auto& [text, action] : written()) {
    EXPECT_EQ(parse_action(text), action) << text;
  }
}

TEST(ActionText, TellsWhereItStopsMakingSense) {
  EXPECT_THAT(refusal_of([] { parse_action("2X0"); }),
              AllOf(HasSubstr("'2X0'"), HasSubstr("character 2"), HasSubstr("one of F, B")));
  EXPECT_THAT(refusal_of([] { parse_action("2SEND_G0"); }), HasSubstr("did you mean 'SEND_"));
  EXPECT_THAT(refusal_of([] { parse_action("2F0x"); }),
              AllOf(HasSubstr("character 4"), HasSubstr("found 'x'")));
  EXPECT_THAT(refusal_of([] { parse_action("(0F3;3B1"); }), HasSubstr("';' or ')'"));
  EXPECT_THAT(refusal_of([] { parse_action("()OVERLAP_F_B"); }), HasSubstr("character 2"));
  EXPECT_THAT(refusal_of([] { parse_action(""); }), HasSubstr("its end"));
}

TEST(ActionText, RefusesHostileCells) {
  for (const std::string& cell : {std::string("99999999999999999999F0"),
                                  std::string("1000001F0"),
                                  std::string("0F-1"),
                                  std::string("0F0\0", 4),
                                  std::string("\0", 1),
                                  std::string(5000, '('),
                                  std::string(100, '(') + "0F0" + std::string(100, ')'),
                                  std::string(1 << 20, '9'),
                                  std::string("0SEND_F0[%4]"),
                                  std::string("0SEND_F0[%zz]"),
                                  std::string("0SEND_F0["),
                                  std::string("0SEND_F0[]"),
                                  std::string("0F0@"),
                                  std::string("0F0#x"),
                                  std::string("0SEND_F0<1"),
                                  std::string("0f0"),
                                  std::string("0F0 1F0"),
                                  std::string("0F0,"),
                                  std::string("0F\xc3\xa9"),
                                  std::string("0(0F0;)OVERLAP_F_B"),
                                  std::string("0SEND_F0[%\xff\xff]")}) {
    const std::string message = refusal_of([&] { parse_action(cell); });
    EXPECT_LT(message.size(), 1000U);
    EXPECT_EQ(message.find('\0'), std::string::npos);
  }
}

rc::Gen<Action> any_action(int depth) {
  const auto number = rc::gen::oneOf(rc::gen::just(Action::kNone), rc::gen::inRange(0, 1000001));
  return rc::gen::exec([=] {
    Action action;
    action.stage = *number;
    action.kind = *rc::gen::elementOf(all_kinds());
    action.microbatch = *number;
    action.peer_stage = *number;
    action.value = *rc::gen::resize(12, rc::gen::arbitrary<std::string>());
    action.replica = *number;
    action.version = *number;
    const int num_parts = depth > 0 ? *rc::gen::inRange(0, 3) : 0;
    for (int i = 0; i < num_parts; ++i) {
      action.parts.push_back(*any_action(depth - 1));
    }
    return action;
  });
}

RC_GTEST_PROP(ActionText, ReadsBackWhateverIsWritten, ()) {
  const Action action = *any_action(3);
  const std::string text = to_text(action);
  RC_ASSERT(parse_action(text) == action);
  RC_ASSERT(text.find(',') == std::string::npos);
}

RC_GTEST_PROP(ActionText, NeverCrashesOnChangedCells, ()) {
  std::string text = to_text(*any_action(2));
  const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
  text[place] = *rc::gen::arbitrary<char>();
  try {
    const Action action = parse_action(text);
    RC_ASSERT(parse_action(to_text(action)) == action);
  } catch (const base::ScheduleError&) {
  }
}

}  // namespace
}  // namespace headrace::schedule
