// What a user of a component is: its target brings txinbox::core and the component's client library.

#include <string_view>

#include <txinbox/sample.hpp>
#include <txinbox/txinbox.hpp>

int main() {
  const std::string_view version = txinbox::version();
  return txinbox::sample::checksum({.business_key = "order123"}) != 0 && !version.empty() ? 0 : 1;
}
