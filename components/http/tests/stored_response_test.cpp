// The form in which an answer is stored.

#include "stored_response.hpp"

#include <random>
#include <string>

#include <doctest/doctest.h>

#include "support/thrown.hpp"

namespace txinbox::test {
namespace {

using http::read_stored_form;
using http::Response;
using http::stored_form;

TEST_CASE("an answer is stored as an HTTP message with the kept header fields") {
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  const Response response{
      .status = 201, .headers = {{"location", "/o/1: x"}, {"Set-Cookie", "a"}, {"ETag", ""}}, .body = every_byte};
  const std::string stored = stored_form(response, {"Location", "etag"}, true);
  CHECK(stored == "HTTP/1.1 201 \r\nlocation: /o/1: x\r\nETag: \r\n\r\n" + every_byte);
  const auto read = read_stored_form(stored);
  REQUIRE(read);
  CHECK(read->status == 201);
  CHECK(read->headers.size() == 2);
  CHECK(read->headers[0].value == "/o/1: x");
  CHECK(read->body == every_byte);
  CHECK(read_stored_form(stored_form(response, {}, false))->body.empty());
}

TEST_CASE("an answer that would change the stored message is refused") {
  const auto refusal = [](const Response& response) {
    return thrown_by([&] { (void)stored_form(response, {}, true); });
  };
  CHECK(refusal({.status = 99}) == "invalid_argument");
  CHECK(refusal({.status = 600}) == "invalid_argument");
  CHECK(refusal({.headers = {{"A", "b\r\nC: d"}}}) == "invalid_argument");
  CHECK(refusal({.headers = {{"A:", "b"}}}) == "invalid_argument");
  CHECK(refusal({.headers = {{"", "b"}}}) == "invalid_argument");
}

TEST_CASE("bytes that are not a stored answer are not read as one") {
  const std::string good = "HTTP/1.1 201 \r\nA: b\r\n\r\nbody";
  REQUIRE(read_stored_form(good));
  for (std::size_t i = 0; i + 6 < good.size(); ++i) {
    CHECK_FALSE(read_stored_form(good.substr(0, good.size() - 4 - 2 - i)));
  }
  for (const std::string bad :
       {"receipt", "HTTP/1.1 20x \r\n\r\n", "HTTP/1.1 999 \r\n\r\n", "HTTP/1.1 201 Created\r\n\r\n",
        "HTTP/1.1 201 \r\nno colon\r\n\r\n", "HTTP/1.1 201 \r\n: a\r\n\r\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(read_stored_form(bad));
  }
  // If a byte changes, another answer or none is read, without a memory error.
  std::minstd_rand random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = good;
    for (int n = 0; n < 3; ++n) changed[random() % changed.size()] = static_cast<char>(random() % 256);
    if (const auto read = read_stored_form(changed)) CHECK(stored_form(*read, {}, true).size() <= changed.size() + 1);
  }
}

}  // namespace
}  // namespace txinbox::test
