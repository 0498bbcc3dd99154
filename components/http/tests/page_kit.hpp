#pragma once

#include <string>
#include <utility>
#include <vector>

#include <soci/soci.h>
#include <nlohmann/json.hpp>
#include <txinbox/operator_page.hpp>
#include <txinbox/txinbox.hpp>

#include "service.hpp"
#include "support/effects.hpp"

namespace txinbox::test {

inline const std::string page_token = "a token of thirty-two characters";

/// The value of the header field Authorization for a name and a password.
std::string basic(const std::string& name, const std::string& password);

/// A page on a database with failed messages. Ann may change them.
struct PageKit {
  EffectDatabase db;
  Pool pool = db.pool(3);
  http::OperatorPage page;

  explicit PageKit(http::OperatorPageOptions options = writing()) : page(pool, std::move(options)) {}

  static http::OperatorPageOptions writing() {
    return {.sign_in = http::sign_in_with_token(page_token), .may_write = true};
  }

  /// Each of these messages fails once, with its payload. With `parks`, this parks it.
  void fail(const std::string& consumer, const std::vector<std::string>& keys, bool parks);

  /// The header fields of a browser of Ann's that is on the page.
  static std::vector<http::Header> of_ann();

  http::Response get(const std::string& target, std::vector<http::Header> headers = of_ann());

  /// Waits until what is read in the background was read for the first time.
  nlohmann::json json(const std::string& target);

  http::Response post(const std::string& target, const std::string& body, std::vector<http::Header> headers = of_ann());

  /// Makes a change, and returns its answer. The status must be 200.
  nlohmann::json change(const std::string& action, const nlohmann::json& body);

  /// The change that the button of this action and key makes.
  nlohmann::json body_of_button(const std::string& target, const std::string& action, const std::string& key);
};

}  // namespace txinbox::test
