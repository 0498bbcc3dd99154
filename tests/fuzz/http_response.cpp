// A stored answer. It must be read as it was stored, byte for byte. An answer that would change the structure of the
// stored message must be refused.
//
// The input is used in two ways: as the stored bytes, and as lines: a status, header fields (name, value, …) up to an
// empty name, and the body.

#include "stored_response.hpp"

#include <charconv>
#include <string>
#include <vector>

#include <txinbox/error.hpp>

#include "fuzz.hpp"

using namespace txinbox::fuzz;
using txinbox::http::Header;
using txinbox::http::read_stored_form;
using txinbox::http::Response;
using txinbox::http::stored_form;

namespace {

std::vector<std::string> names_of(const Response& response) {
  std::vector<std::string> names;
  for (const Header& each : response.headers) names.push_back(each.name);
  return names;
}

bool is_same(const Response& a, const Response& b) {
  if (a.status != b.status || a.body != b.body || a.headers.size() != b.headers.size()) return false;
  for (std::size_t i = 0; i < a.headers.size(); ++i) {
    if (a.headers[i].name != b.headers[i].name || a.headers[i].value != b.headers[i].value) return false;
  }
  return true;
}

void claim_reads_what_was_stored(std::string_view stored) {
  const auto read = read_stored_form(stored);
  if (!read) return;
  claim(read->status >= 100 && read->status <= 599, "a status is valid in HTTP");
  const auto again = unless_refused<txinbox::Error>([&] { return stored_form(*read, names_of(*read), true); });
  claim(again == stored, "storing the answer that was read gives the same bytes");
}

bool may_be_in_a_value(std::string_view value) {
  return value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

bool is_name(std::string_view name) {
  for (const char c : name) {
    if (c <= ' ' || c >= '\x7f' || std::string_view("\"(),/:;<=>?@[\\]{}").find(c) != std::string_view::npos) {
      return false;
    }
  }
  return !name.empty();
}

Response answer_in(Fields fields) {
  Response response{.status = 0};
  const auto status = fields.line();
  std::from_chars(status.data(), status.data() + status.size(), response.status);
  while (!fields.empty()) {
    const std::string name(fields.line());
    if (name.empty()) break;
    response.headers.push_back({name, std::string(fields.line())});
  }
  response.body = fields.rest();
  return response;
}

void claim_stores_what_can_be_read(const Response& response) {
  bool is_good = response.status >= 100 && response.status <= 599;
  for (const auto& [name, value] : response.headers) is_good = is_good && is_name(name) && may_be_in_a_value(value);
  const auto stored = unless_refused<txinbox::Error>([&] { return stored_form(response, names_of(response), true); });
  claim(stored.has_value() == is_good, "an answer is stored if it is valid, and only then");
  if (!stored) return;
  const auto read = read_stored_form(*stored);
  claim(read && is_same(*read, response), "a stored answer is read as it was");

  // Only the fields with the kept name are stored.
  if (response.headers.empty()) return;
  const std::string& name = response.headers.front().name;
  const auto head = read_stored_form(stored_form(response, {name}, false));
  claim(head && head->body.empty() && !head->headers.empty(), "the head of an answer is stored without its body");
  for (const Header& each : head->headers) {
    claim(txinbox::http::same_name(each.name, name), "a field that is not kept is not stored");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  claim_reads_what_was_stored({reinterpret_cast<const char*>(data), size});
  claim_stores_what_can_be_read(answer_in(Fields(data, size)));
  return 0;
}
