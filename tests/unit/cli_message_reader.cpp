#include <array>
#include <span>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <txinbox/error.hpp>
#include <txinbox/message_of.hpp>

#include "cli/consume/message_reader.hpp"
#include "support/thrown.hpp"

using namespace txinbox;

namespace {

/// The business key that `--key TEXT` finds in a broker's message; otherwise the error as one word.
std::string key_of(const std::string& text, const Incoming& incoming) {
  cli::ConsumeOptions options;
  options.from = "kafka://broker:9092/orders?group=g";
  options.key = text;
  const cli::Script script;
  Message message;
  cli::Values values;
  const std::string error = test::thrown_by([&] {
    const cli::MessageReader reader(options, script, cli::SqlLimits());
    reader.read(incoming, message, values);
  });
  return error == "nothing" ? "key " + message.business_key : error;
}

/// The message id of a broker's message, with the pointer /id.
std::string id_of(const Incoming& incoming) {
  cli::ConsumeOptions options;
  options.key = "/no";
  options.message_id = "/id";
  const cli::Script script;
  const cli::MessageReader reader(options, script, cli::SqlLimits());
  Message message;
  cli::Values values;
  reader.read(incoming, message, values);
  return message.message_id;
}

}  // namespace

TEST_CASE("a broker's message has the broker's id, unless the pointer finds another") {
  CHECK(id_of({.body = R"({"no":1,"id":"m1"})", .id = "orders/3@42"}) == "m1");
  CHECK(id_of({.body = R"({"no":1})", .id = "orders/3@42"}) == "orders/3@42");
}

TEST_CASE("a message id that is not UTF-8 is in hexadecimal, and one that is too long is cut") {
  CHECK(traceable_id("") == "");
  CHECK(traceable_id("orders/3@42 \xc3\xa9\n") == "orders/3@42 \xc3\xa9\n");
  CHECK(traceable_id("\xff\x01") == "0xff01");
  CHECK(traceable_id(std::string("a\0", 2)) == "0x6100");
  CHECK(traceable_id(std::string(255, 'm')) == std::string(255, 'm'));
  CHECK(traceable_id(std::string(256, 'm')) == std::string(255, 'm'));
  CHECK(traceable_id(std::string(254, 'm') + "\xc3\xa9") == std::string(254, 'm'));
  CHECK(traceable_id(std::string(200, '\xff')).size() == 255);
  CHECK(id_of({.body = R"({"no":1})", .id = "\xff"}) == "0xff");
  CHECK(id_of({.body = R"({"no":1,"id":"a\u0000"})", .id = "\xff"}) == "0x6100");
}

TEST_CASE("with --key @key, the record key is the business key, and must be there") {
  CHECK(key_of("@key", {.body = R"({"key":"no"})", .key = "k1"}) == "key k1");
  CHECK(key_of("@key", {.body = R"({"key":"no"})"}) == "invalid_key");
  CHECK(key_of("@key", {.body = "{}", .key = ""}) == "invalid_key");
  CHECK(key_of("@key", {.body = "no JSON", .key = "k1"}) == "unreadable");
  CHECK(key_of("@key", {.has_body = false, .key = "k1"}) == "unreadable");
}

TEST_CASE("with --key @key-hex and @header-hex:NAME, a key of any bytes is a business key in hexadecimal") {
  const std::string forty_two("\0\0\0\0\0\0\0\x2a", 8);
  const std::array<IncomingHeader, 2> headers = {{{.name = "id", .value = "\xff\xC0"}, {.name = "empty", .value = ""}}};
  const Incoming incoming{.body = "{}", .key = forty_two, .headers = headers};
  CHECK(key_of("@key-hex", incoming) == "key 000000000000002a");
  CHECK(key_of("@header-hex:id", incoming) == "key ffc0");
  CHECK(key_of("@header-hex:empty", incoming) == "invalid_key");
  CHECK(key_of("@header-hex:missing", incoming) == "invalid_key");
  CHECK(key_of("@key-hex", {.body = "{}"}) == "invalid_key");
  CHECK(key_of("@key-hex", {.body = "{}", .key = ""}) == "invalid_key");
}

TEST_CASE("with --key @header:NAME, the only header of this name is the business key, and must be there") {
  const std::array<IncomingHeader, 6> headers = {{{.name = "CE_ID", .value = "no"},
                                                  {.name = "ce_id", .value = "h1"},
                                                  {.name = "ce_id", .value = "h1"},
                                                  {.name = "two", .value = "h1"},
                                                  {.name = "two", .value = "h2"},
                                                  {.name = "empty", .value = ""}}};
  const Incoming incoming{.body = R"({"ce_id":"no"})", .key = "k1", .headers = headers};
  CHECK(key_of("@header:ce_id", incoming) == "key h1");
  CHECK(key_of("@header:two", incoming) == "invalid_key");
  CHECK(key_of("@header:missing", incoming) == "invalid_key");
  CHECK(key_of("@header:empty", incoming) == "invalid_key");
  CHECK(key_of("@header:ce_id", {.body = R"({"ce_id":"no"})", .key = "k1"}) == "invalid_key");
}

TEST_CASE("a key template takes headers, the record key and members of the body together") {
  const std::array<IncomingHeader, 3> headers = {
      {{.name = "ce_source", .value = "//shop"}, {.name = "ce_id", .value = "7"}, {.name = "raw", .value = "\xff"}}};
  const Incoming incoming{.body = R"({"no":1,"empty":""})", .key = "k1", .headers = headers};
  CHECK(key_of("{@header:ce_source}#{@header:ce_id}", incoming) == "key //shop#7");
  CHECK(key_of("o:{@key}:{/no}:{@header-hex:raw}", incoming) == "key o:k1:1:ff");
  CHECK(key_of("{@key-hex}-{{x}}", incoming) == "key 6b31-{x}");
  CHECK(key_of("{@header:ce_source}#{@header:ce_time}", incoming) == "invalid_key");
  CHECK(key_of("{@header:ce_id}#{/empty}", incoming) == "invalid_key");
  CHECK(key_of("{@header:ce_id}#{/missing}", incoming) == "invalid_key");
}

TEST_CASE("a key template with a header never makes the same key from different values") {
  const auto key = [](std::string_view source, std::string_view id, std::string_view body = "{}") {
    const std::array<IncomingHeader, 2> headers = {{{.name = "s", .value = source}, {.name = "i", .value = id}}};
    const Incoming incoming{.body = body, .headers = headers};
    return key_of(body == "{}" ? "{@header:s}#{@header:i}" : "{/a}::{@header:s}", incoming);
  };
  CHECK(key("a#b", "c") == "key a%23b#c");
  CHECK(key("a", "b#c") == "key a#b#c");
  CHECK(key("a%23b", "c") == "key a%2523b#c");
  CHECK(key("x", "", R"({"a":"y:%"})") == "key y%3A%25::x");
}

TEST_CASE("a key template with a header needs a separator between its values that can be escaped") {
  for (const char* wrong : {"{@key}{/a}", "{@key}x{/a}", "{/a}1{@key}", "{@key}%{/a}", "{@key}\xc3\xa9{/a}", "{@other}",
                            "{@header:}", "@other", "@header:", "@header-hex:", "{@key"}) {
    CAPTURE(wrong);
    CHECK(key_of(wrong, {.body = R"({"a":1})", .key = "k"}) == "invalid_argument");
  }
}

TEST_CASE("the error about a missing header in a key template names it") {
  const auto message_of = key_from("{@header:ce_source}#{@header:ce_id}");
  const std::array<IncomingHeader, 2> headers = {
      {{.name = "ce_source", .value = "s"}, {.name = "ce_id", .value = "i"}}};
  CHECK(message_of({.headers = headers}).business_key == "s#i");
  CHECK_THROWS_WITH_AS(message_of({.headers = std::span(headers).first(1)}), "the message has no header ce_id", Error);
  CHECK(key_from("{@key}#{/no}")({.body = R"({"no":5})", .key = "k"}).business_key == "k#5");
}

TEST_CASE("a broker's message without a key is an invalid_key, and one whose body cannot be read is unreadable") {
  CHECK(key_of("/no", {.body = R"({"no":7})"}) == "key 7");
  CHECK(key_of("/no", {.body = R"({"other":7})"}) == "invalid_key");
  CHECK(key_of("/no", {.body = "no JSON"}) == "unreadable");
  CHECK(key_of("/no", {.body = "[7]"}) == "unreadable");
  CHECK(key_of("/no", {.body = ""}) == "unreadable");
  CHECK(key_of("/no", {.has_body = false}) == "unreadable");
  CHECK(test::thrown_by([] { (void)key_from("/no")({.body = "no JSON"}); }) == "unreadable");
  CHECK(test::thrown_by([] { (void)key_from("/no")({.has_body = false}); }) == "unreadable");
  CHECK(test::thrown_by([] { (void)key_from("/no")({.body = "{}"}); }) == "invalid_key");
}
