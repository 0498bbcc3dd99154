#pragma once

#include <exception>
#include <string>

#include <soci/soci.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

namespace txinbox::test {

/// The exception of `f` as one word: "nothing", an `ErrorCode`'s name, "transient" or "other".
template <class F>
std::string thrown_by(F&& f) {
  try {
    f();
    return "nothing";
  } catch (const Error& e) {
    return std::string(to_string(e.code()));
  } catch (...) {
    return is_transient(std::current_exception()) ? "transient" : "other";
  }
}

}  // namespace txinbox::test
