#include "console/database_option.hpp"

#include <array>
#include <cctype>
#include <cstdlib>

#include <txinbox/error.hpp>

#include "backend/registry.hpp"
#include "base/ascii.hpp"
#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

std::string percent_decoded(std::string_view text) {
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      result += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string scheme_of(std::string_view url) {
  const auto colon = url.find(':');
  return colon == std::string_view::npos ? std::string() : detail::lower_case(url.substr(0, colon));
}

/// Whether the URL names a file, which has no password.
bool names_file(std::string_view scheme) {
  const backend::Database* database = backend::find_by_scheme(scheme);
  return database != nullptr && database->url_kind() == detail::UrlKind::file;
}

bool user_part_holds_password(std::string_view url) {
  const auto slashes = url.find("//");
  if (slashes == std::string_view::npos) return false;
  const auto rest = url.substr(slashes + 2);
  const auto at = rest.substr(0, rest.find('?')).rfind('@');
  if (at == std::string_view::npos) return false;
  const auto colon = rest.substr(0, at).find(':');
  return colon != std::string_view::npos && colon + 1 < at;
}

// Finds `password = x` by the rules of the client libraries.
bool parameter_holds_password(std::string_view text) {
  constexpr std::array<std::string_view, 5> names{"password", "passwd", "pass", "pwd", "sslpassword"};
  for (auto name : names) {
    for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      const char before = at == 0 ? ' ' : text[at - 1];
      if (std::isalnum(static_cast<unsigned char>(before)) != 0 || before == '_') continue;
      auto end = at + name.size();
      while (end < text.size() && text[end] == ' ') ++end;
      if (end + 1 < text.size() && text[end] == '=') return true;  // a space can be a password
    }
  }
  return false;
}

}  // namespace

bool holds_password(std::string_view url) {
  const auto scheme = scheme_of(url);
  if (names_file(scheme)) return false;
  if (user_part_holds_password(url)) return true;
  if (scheme == "soci") return parameter_holds_password(detail::lower_case(percent_decoded(url)));
  const auto query = url.find('?');
  for (auto at = query; at != std::string_view::npos;) {
    const auto next = url.find('&', at + 1);
    if (parameter_holds_password(detail::lower_case(percent_decoded(url.substr(at + 1, next - at - 1))))) return true;
    at = next;
  }
  return false;
}

std::string_view value_of_argument(std::string_view argument) {
  if (!argument.starts_with("-")) return argument;
  const auto equals = argument.find('=');
  return equals == std::string_view::npos ? std::string_view() : argument.substr(equals + 1);
}

bool is_url_with_password(std::string_view argument) {
  const auto value = value_of_argument(argument);
  return backend::is_url_scheme(scheme_of(value)) && holds_password(value);
}

void DatabaseOption::add_to(Command command) {
  command.option("--db", option_, "Database URL without a password; default: the environment variable TXINBOX_DB")
      .type("URL");
}

std::string DatabaseOption::url() const {
  if (!option_.empty()) {
    if (holds_password(option_)) {
      throw UsageError(
          "--db contains a password, which every user of this machine can read; put the URL into the environment "
          "variable TXINBOX_DB, or the password into ~/.my.cnf or ~/.pgpass");
    }
    return option_;
  }
  const char* variable = std::getenv("TXINBOX_DB");
  if (variable == nullptr || *variable == '\0') {
    throw UsageError("which database? Give --db URL, or set the environment variable TXINBOX_DB");
  }
  return variable;
}

const backend::Database& DatabaseOption::database() const {
  try {
    return backend::database_of_url(url());
  } catch (const Error& error) {  // the command would fail again in the same way
    if (error.code() != ErrorCode::unsupported_database) throw;
    throw UsageError(error.what());
  }
}

}  // namespace txinbox::cli
