#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <typeinfo>

#include <soci/error.h>
#include <txinbox/error.hpp>
#include <txinbox/result.hpp>

#include "backend/backend.hpp"

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace {

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                         &std::free);
  return name ? name.get() : type.name();
}

}  // namespace

std::string error_class(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return std::string(to_string(e.code()));
  } catch (const soci::soci_error& e) {
    const backend::ErrorClass found = backend::classify(e);
    return backend::is_transient(found) ? std::string(backend::to_string(found)) : backend::code_of(e);
  } catch (const std::exception& e) {
    return name_of(typeid(e));
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return type == nullptr ? "unknown" : name_of(*type);
  }
}

TXINBOX_NAMESPACE_END
}  // namespace txinbox
