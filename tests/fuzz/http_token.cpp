// A token. An issued token must be accepted for its scope and route, and every other text must be refused.
//
// Input: a scope, a route, another scope and another route, each on its own line, and then a text that a client sends
// as a token. The text also says how to change an issued token: a position, and the character that is put there.

#include <txinbox/error.hpp>
#include <txinbox/http.hpp>

#include "fuzz.hpp"

using namespace txinbox::fuzz;
using txinbox::Error;
using txinbox::http::Request;
using txinbox::http::Tokens;

namespace {

// None if the token is refused.
std::optional<std::string> taken(const Tokens& tokens, const std::string& scope, const std::string& route,
                                 const std::string& token) {
  const auto key = tokens.key([&](const Request&) { return scope; }, route);
  try {
    const auto found = key({.method = "POST", .target = "/", .headers = {{"Idempotency-Key", token}}});
    return found ? std::optional(found->text) : std::nullopt;
  } catch (const Error& error) {
    claim(error.code() == txinbox::ErrorCode::invalid_key, "an invalid token is the client's error");
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const std::string scope(fields.line());
  const std::string route(fields.line());
  const std::string other_scope(fields.line());
  const std::string other_route(fields.line());
  const std::string text(fields.rest());

  static const Tokens tokens({std::string(32, 'n'), std::string(32, 'o')}, std::chrono::hours(1));
  const std::string issued = tokens.issue(scope, route);
  claim(taken(tokens, scope, route, issued) == issued, "an issued token is accepted, and is the key");
  claim(taken(tokens, other_scope, other_route, issued).has_value() == (other_scope == scope && other_route == route),
        "a token is accepted only for its own scope and route");
  claim(!taken(tokens, scope, route, text), "a text that was not issued is refused");
  if (text.size() < 2) return 0;

  std::string changed = issued;
  changed[static_cast<unsigned char>(text[0]) % changed.size()] = text[1];
  claim(taken(tokens, scope, route, changed).has_value() == (changed == issued), "a changed token is refused");
  claim(!taken(tokens, scope, route, issued + text.substr(1, 1)) || text[1] == ' ' || text[1] == '\t',
        "a longer token is refused");
  claim(!taken(tokens, scope, route, issued.substr(0, issued.size() - 1)), "a shorter token is refused");
  return 0;
}
